// Mixture-of-experts permutations and the router.
#pragma once

#include <cstdint>
#include <string>

#include "op/field.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// Parameters of `moe_permute`: every token's row is copied to topk rows.
///
///   y[map[k tokens + t]] = x[t]   for k < topk, unless map[...] = -1 (the copy is dropped)
///
/// Ports: x [tokens, hidden], row_id_map [topk tokens, 1] (int32, derived: a random permutation of the copies, of which
/// the last `dropped` are dropped), y [topk tokens - dropped, hidden]. Bytes moved: defined bit for bit.
/// Source: TransformerEngine permutation.h, common/permutation/permutation.cu.
struct MoePermuteParams {
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  std::int64_t topk = 1;
  std::int64_t dropped = 0;

  template <class V>
  void describe(V& v) {
    v.integer("tokens", "t", tokens, {.minimum = 0, .maximum = 1 << 24, .required = true, .doc = "rows of x"});
    v.integer("hidden", "h", hidden, {.minimum = 1, .maximum = 1 << 20, .required = true, .doc = "columns of x"});
    v.integer("topk", "k", topk, {.minimum = 1, .maximum = 128, .doc = "experts per token"});
    v.integer("dropped", "drop", dropped,
              {.minimum = 0, .maximum = 1 << 24, .doc = "copies that no expert has room for"});
  }
};

/// Parameters of `moe_unpermute`: the experts' rows return to their tokens,
///
///   y[t] = sum_k prob[t, k] x[map[k tokens + t]]   without probs: plain sum; dropped copies count as zero
///
/// Ports: x [topk tokens - dropped, hidden], row_id_map as in moe_permute, probs [tokens, topk] (FP32, only with
/// probs), y [tokens, hidden]. As implemented, every probability, product and partial sum is rounded to the tensor's
/// own format, k ascending, so the error model is that of this format, not of FP32.
/// Source: TransformerEngine permutation.h; common/permutation/permutation.cu, compute type of moe_unpermute_kernel.
struct MoeUnpermuteParams {
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  std::int64_t topk = 1;
  std::int64_t dropped = 0;
  bool probs = true;

  template <class V>
  void describe(V& v) {
    v.integer("tokens", "t", tokens, {.minimum = 0, .maximum = 1 << 24, .required = true, .doc = "rows of y"});
    v.integer("hidden", "h", hidden, {.minimum = 1, .maximum = 1 << 20, .required = true, .doc = "columns of y"});
    v.integer("topk", "k", topk, {.minimum = 1, .maximum = 128, .doc = "experts per token"});
    v.integer("dropped", "drop", dropped,
              {.minimum = 0, .maximum = 1 << 24, .doc = "copies that no expert has room for"});
    v.boolean("probs", "p", probs, "rows are weighted with the router's probabilities");
  }
};

/// Parameters of `router_topk`: the topk best experts of every token and their weights.
///
///   score     softmax over all experts (before the choice), softmax over the chosen ones (after), or sigmoid
///   chosen    the topk largest scores of a row
///   probs     scaling score for the chosen experts, 0 elsewhere; sigmoid scores are divided by their sum over the
///             chosen ones + 1e-20 first, if topk > 1
///
/// Ports: logits [tokens, experts], probs [tokens, experts] (the mode's format), routing_map [tokens, experts] (uint8).
/// Experts at the boundary of the choice whose scores FP32 arithmetic cannot tell apart are not judged one by one;
/// every row must have topk experts. A token with a NaN score is not judged.
/// Source: TransformerEngine fused_router.h, common/fused_router/fused_topk_with_score_function.cu.
struct RouterTopkParams {
  std::int64_t tokens = 0;
  std::int64_t experts = 0;
  std::int64_t topk = 1;
  std::string score = "softmax_pre";  ///< softmax_pre | softmax_post | sigmoid
  double scaling = 1;

  template <class V>
  void describe(V& v) {
    v.integer("tokens", "t", tokens, {.minimum = 0, .maximum = 1 << 24, .required = true, .doc = "rows of logits"});
    v.integer("experts", "e", experts,
              {.minimum = 1, .maximum = 4096, .required = true, .doc = "experts, columns of logits"});
    v.integer("topk", "k", topk, {.minimum = 1, .maximum = 128, .doc = "experts per token"});
    v.choice("score", "sc", score, {"softmax_pre", "softmax_post", "sigmoid"}, "score function, and when softmax runs");
    v.number("scaling", "s", scaling, {.minimum = 1e-6, .maximum = 1e6, .doc = "factor of the probabilities"});
  }
};

[[nodiscard]] const Op& moe_permute();
[[nodiscard]] const Op& moe_unpermute();
[[nodiscard]] const Op& router_topk();

}  // namespace numcheck::op
