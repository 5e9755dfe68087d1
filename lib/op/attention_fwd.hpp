// Scaled dot-product attention, forward.
#pragma once

#include "op/attention_params.hpp"

namespace numcheck::op {

/// Ports: q, k, v; bias [heads, sq, sk]; softmax_offset [heads] (FP32); q_lengths, kv_lengths [batches] (int32);
/// o [as q, with dv channels]; lse [batches * heads, sq] (FP32). Formula: AttentionParams.
using AttentionFwdParams = AttentionParams;

/// The descriptor of `attention_fwd`.
[[nodiscard]] const Op& attention_fwd();

}  // namespace numcheck::op
