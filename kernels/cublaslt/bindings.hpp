// What cuBLASLt computes.
#pragma once

#include "kernels/contract/binding.hpp"

namespace numcheck::kernels::cublaslt {

/// How it multiplies matrices.
inline constexpr auto kArithmetic = model::MatrixArithmetic::by_mode_alpha_first;

/// The backend's only op; it needs no entry points.
[[nodiscard]] const Binding& gemm();

}  // namespace numcheck::kernels::cublaslt
