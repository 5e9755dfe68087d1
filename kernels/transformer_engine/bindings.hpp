// What TransformerEngine's library computes: one binding per op, and the functions that it calls.
#pragma once

#include "kernels/contract/binding.hpp"

namespace numcheck::kernels::transformer_engine {

/// Row-major D = op(A) op(B) is column-major D^T = op(B)^T op(A)^T: the library's first operand is our B, its second
/// our A, and transposition flags stay with their matrix.
///
/// TransformerEngine requests TF32 products from cuBLASLt whenever A, B and D are FP32, so it has the mode tf32 and not
/// fp32 (with NVIDIA_TF32_OVERRIDE=0, cuBLASLt computes FP32 products nevertheless). It accumulates into D in place, so
/// C is copied there first; its GELU epilogue saves GELU's input, here into the workspace. FP8 operands are multiplied
/// as A B^T; other layouts need transposed copies below sm_100. Source: TransformerEngine common/gemm/cublaslt_gemm.cu.
[[nodiscard]] const Binding& gemm();

/// nvte_layernorm_fwd, nvte_layernorm_bwd, nvte_rmsnorm_fwd, nvte_rmsnorm_bwd and nvte_rmsnorm_bwd_add. They add 1 to a
/// zero-centred gamma in FP32. NVTE_NORM_FWD_USE_CUDNN and NVTE_NORM_BWD_USE_CUDNN are left to the user.
[[nodiscard]] const Binding& layernorm_fwd();
[[nodiscard]] const Binding& layernorm_bwd();
[[nodiscard]] const Binding& rmsnorm_fwd();
[[nodiscard]] const Binding& rmsnorm_bwd();

/// nvte_gelu, nvte_silu, ..., nvte_swiglu, ... and their gradients nvte_dgelu, ... There is no gelu_erf. clamped_swiglu
/// with an offset other than 1 needs the functions that take one, which older versions lack.
[[nodiscard]] const Binding& activation_fwd();
[[nodiscard]] const Binding& activation_bwd();

/// The functions quantise while they sum: without fusion, the codes go into the workspace. Below sm_100 they also need
/// a transposed output, which goes there too.
[[nodiscard]] const Binding& bias_grad();

/// Masks none, arbitrary, causal and causal_bottom_right are nvte_scaled_softmax, _scaled_masked_softmax,
/// _scaled_upper_triang_masked_softmax and _scaled_aligned_causal_masked_softmax. They support BF16 and FP16, replace
/// masked scores with -10000, and round the forward scale to the tensor's format. Their kernels support rows of up to
/// 16384 columns, which they read four at a time from 65 columns on, and process a fixed number of rows per block.
/// Source: TransformerEngine common/fused_softmax.
[[nodiscard]] const Binding& softmax_fwd();
[[nodiscard]] const Binding& softmax_bwd();

/// nvte_quantize with a per-tensor scale (rowwise, or both layouts in one call), nvte_dequantize, nvte_transpose.
[[nodiscard]] const Binding& quantize();
[[nodiscard]] const Binding& dequantize();
[[nodiscard]] const Binding& transpose();

/// nvte_fused_rope_forward and _backward on dense tensors in SBHD or BSHD order, without context parallelism. The
/// gradient has taken start positions since 2.10.
[[nodiscard]] const Binding& rope_fwd();
[[nodiscard]] const Binding& rope_bwd();

/// nvte_permute and nvte_unpermute, which are C++ functions, and nvte_fused_topk_with_score_function_forward. Rows are
/// moved 16 bytes at a time. nvte_permute builds the row map itself from the copies sorted by place, which are derived
/// from the op's map before the launch. The router computes in the tensor's format up to 2.12, in FP32 since 2.13.
/// Source: TransformerEngine common/permutation/permutation.cu, common/fused_router.
[[nodiscard]] const Binding& moe_permute();
[[nodiscard]] const Binding& moe_unpermute();
[[nodiscard]] const Binding& router_topk();

/// nvte_dropout_fwd, with the generator's state {rng_seed, 0}, and nvte_dropout_bwd: BF16 and FP16 tensors.
[[nodiscard]] const Binding& dropout_fwd();
[[nodiscard]] const Binding& dropout_bwd();

}  // namespace numcheck::kernels::transformer_engine
