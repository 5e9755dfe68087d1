// Binding of the op `gemm` to nvte_cublas_gemm_v2.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::te {

/// Row-major D = op(A) op(B) is column-major D^T = op(B)^T op(A)^T: the library's first operand is our B, its second
/// our A, and transposition flags stay with their matrix.
///
/// TransformerEngine asks cuBLASLt for TF32 products whenever A, B and D are FP32, so it has the mode tf32 and not fp32
/// (with NVIDIA_TF32_OVERRIDE=0 cuBLASLt gives FP32 products nevertheless). It accumulates into D itself, so C is
/// copied there first; its GELU epilogue saves what goes into GELU, here into the workspace. FP8 operands are
/// multiplied as A B^T; other layouts need transposed copies below sm_100. Source: TransformerEngine
/// common/gemm/cublaslt_gemm.cu.
[[nodiscard]] const Binding& gemm();

}  // namespace numcheck::kernels::te
