// FP8 attention as operation graphs.
#pragma once

#include "kernels/cudnn/graph.hpp"

namespace numcheck::kernels::cudnn {

/// Puts a case of attention_fwd in an FP8 mode into the graph, in the composite form: tensors as attention_graph has them,
/// scales, inverse scales and amaxes as [1, 1, 1, 1]. Forward:
///
///   s = q k^T; mul scale; mul q_scale_inv; mul k_scale_inv; masks; m, e, l and lse as in attention_graph; p = e / l;
///   s_amax = amax p; p8 = p s_scale; x = p8 v; mul s_scale_inv; mul v_scale_inv; o_amax = amax x; o = x o_scale
///
/// p8 is E4M3. Throws CudnnError.
/// Source: NVIDIA's cudnn-frontend 1.23, scaled_dot_product_flash_attention.h, matmul_fp8.h.
void build_fp8_forward(Graph& graph, const Call& call);

/// The same of attention_bwd:
///
///   D = sum do o; mul do_scale_inv; mul o_scale_inv; p = exp(s - lse) from the same s; p8 = p s_scale
///   dv: p8^T do; [add up heads]; mul s_scale_inv; mul do_scale_inv; amax; mul dv_scale
///   dp = do v^T; mul do_scale_inv; mul v_scale_inv; sub D; mul p; mul scale; dp_amax = amax dp; dp8 = dp dp_scale
///   dq: dp8 k; mul dp_scale_inv; mul k_scale_inv; amax; mul dq_scale
///   dk: dp8^T q; [add up heads]; mul dp_scale_inv; mul q_scale_inv; amax; mul dk_scale
///
/// dp8 has the gradients' format. Heads are added up in FP32.
/// Source: NVIDIA's cudnn-frontend 1.23, sdpa_fp8_bwd.h, matmul_fp8.h.
void build_fp8_backward(Graph& graph, const Call& call);

}  // namespace numcheck::kernels::cudnn
