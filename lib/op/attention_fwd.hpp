// Scaled dot-product attention, forward.
#pragma once

#include "op/attention_params.hpp"

namespace numcheck::op {

/// Ports: q, k, v; bias [heads, sq, sk]; softmax_offset [heads] (FP32); q_lengths, kv_lengths [batches] (int32);
/// dropout_mask [batches * heads, sq, sk]; o [as q, with dv channels]; lse, max_logit [batches * heads, sq] (FP32; with layout
/// thd [tokens, heads]). Formula: AttentionParams. In FP8 (attention_fp8.hpp) also s_scale, s_scale_inv; q_scale_inv,
/// k_scale_inv, v_scale_inv; o_scale; s_amax, o_amax [1] (FP32).
using AttentionFwdParams = AttentionParams;

/// The descriptor of `attention_fwd`.
[[nodiscard]] const Op& attention_fwd();

}  // namespace numcheck::op
