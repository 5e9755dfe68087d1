// One call of fused attention: parameter objects, tensors, and what the forward pass saves for the backward pass.
#pragma once

#include "kernels/transformer_engine/launch.hpp"
#include "op/attention_params.hpp"

namespace numcheck::kernels::transformer_engine {

/// nvte_fused_attn_fwd_v2 on q, k, v, bias and softmax_offset, which writes o, lse and max_logit. The
/// operands' memory after the scratch is an AttentionMemory. Calling the result throws NotSupported if the library does
/// not save log-sum-exps.
[[nodiscard]] Enqueue forward_attention(Operands& operands, const op::AttentionParams& p, bool training);

/// nvte_fused_attn_bwd_v2, deterministic, on the inputs of attention_bwd, which writes dq, dk, dv, dbias and
/// dsoftmax_offset.
[[nodiscard]] Enqueue backward_attention(Operands& operands, const op::AttentionParams& p);

}  // namespace numcheck::kernels::transformer_engine
