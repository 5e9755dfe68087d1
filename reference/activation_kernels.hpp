// Activations of several elements at a time, compiled once per instruction set. All sets produce the same bits, and the same
// numbers as for one element but for exponentials, which may differ by an ulp of a double.
// Plain types only: nothing here may emit a symbol that another translation unit shares.
#pragma once

#include <cstddef>

#include "op/activation_kind.hpp"
#include "reference/norm_kernels.hpp"

namespace numcheck::reference {

struct ActivationKernels {
  /// f(x) of `count` elements below kTame in magnitude. False, and nothing is set, if there is no kernel for f or one of them is
  /// not.
  bool (*values)(op::Activation f, const double* x, std::size_t count, const NormRow& out);
};

namespace baseline {
[[nodiscard]] const ActivationKernels& activation_kernels() noexcept;
}
namespace avx2 {
[[nodiscard]] const ActivationKernels& activation_kernels() noexcept;
}
namespace avx512 {
[[nodiscard]] const ActivationKernels& activation_kernels() noexcept;
}

/// Those of the active instruction set.
[[nodiscard]] const ActivationKernels& activation_kernels() noexcept;

}  // namespace numcheck::reference
