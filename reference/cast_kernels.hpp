// Loops of casts, compiled once per instruction set. Plain types only: nothing here may emit a symbol that another translation unit
// shares.
#pragma once

#include <cstddef>

namespace numcheck::reference {

struct CastKernels {
  /// out = RN32(RN32(x) scale) of `count` elements, within +-most; NaN stays.
  void (*scaled)(const double* x, std::size_t count, float scale, double most, double* out);
  /// The largest |x|, at least 0; NaN is dropped.
  double (*largest_magnitude)(const double* x, std::size_t count);
  /// The largest x, at least 0; NaN is dropped.
  double (*largest_value)(const double* x, std::size_t count);
};

namespace baseline {
[[nodiscard]] const CastKernels& cast_kernels() noexcept;
}
namespace avx2 {
[[nodiscard]] const CastKernels& cast_kernels() noexcept;
}
namespace avx512 {
[[nodiscard]] const CastKernels& cast_kernels() noexcept;
}

/// Those of the active instruction set.
[[nodiscard]] const CastKernels& cast_kernels() noexcept;

}  // namespace numcheck::reference
