// What cuBLAS computes: what cuBLASLt does not have.
#pragma once

#include "kernels/contract/binding.hpp"

namespace numcheck::kernels::cublas {

/// How it multiplies matrices: with cuBLASLt's kernels.
inline constexpr auto kArithmetic = model::MatrixArithmetic::by_mode_alpha_first;

/// Products of different sizes by cublasGemmGroupedBatchedEx; with algorithms "all" or "top", the same by one cublasGemmEx for each
/// group as well, so that the digests of both say whether their bits are equal.
///
/// Row-major D = op(A) op(B) is column-major D^T = op(B)^T op(A)^T: the library's first operand is our B, its second our A, and
/// transposition flags stay with their matrix. The library accumulates into C, so C is copied to D first.
/// Refused: FP8, and outputs in another format than the operands'.
/// Source: cuBLAS manual, cublasGemmGroupedBatchedEx (from 12.5 on).
[[nodiscard]] const Binding& grouped_gemm();

}  // namespace numcheck::kernels::cublas
