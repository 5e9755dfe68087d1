// What cuBLASLt computes.
#pragma once

#include "kernels/contract/binding.hpp"

namespace numcheck::kernels::cublaslt {

/// How it multiplies matrices.
inline constexpr auto kArithmetic = model::MatrixArithmetic::by_mode_alpha_first;

/// The backend's ops; they need no entry points.
[[nodiscard]] const Binding& gemm();
[[nodiscard]] const Binding& grouped_gemm();

}  // namespace numcheck::kernels::cublaslt
