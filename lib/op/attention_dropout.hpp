// The dropout mask that a backend draws for attention.
#pragma once

#include "op/attention_params.hpp"

namespace numcheck::op {

/// Parameters are those of attention, but that a mask is drawn unless told otherwise, with dropout 0.1:
///
///   mask_ij random for each sequence and head, P(mask_ij = 0) = dropout
///
/// The random bits are the backend's own choice. What it chooses with rng_seed, every pass of attention must choose again:
/// attention_fwd and attention_bwd run this op first, and are judged by the mask that it leaves. The mask itself is judged by
/// the share of dropped weights, of all and of each head, query and key, by how often neighbours (keys, queries, heads,
/// sequences) are dropped together, and by whether draws repeat: of weights that a query sees; the others are not judged.
/// Nor is what only several masks show, such as a seed that changes nothing.
///
/// Where a library's interface does not give its mask back, it is recovered by attention over keys of equal weight and
/// values that are unit vectors: then o_ic is not 0 where key c is kept.
///
/// Ports: q_lengths, kv_lengths as in attention_fwd; dropout_mask [batches * heads, sq, sk].
/// Source: TransformerEngine include/transformer_engine/fused_attn.h, rng_state.
struct AttentionDropoutParams : AttentionParams {
  AttentionDropoutParams() noexcept;
};

/// The descriptor of `attention_dropout`.
[[nodiscard]] const Op& attention_dropout();

/// The passes of a case before attention itself: attention_dropout if the mask is drawn.
[[nodiscard]] std::vector<Pass> passes_before_attention(const AttentionParams& p);

}  // namespace numcheck::op
