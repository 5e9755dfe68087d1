// What forward and backward attention have in common: parameters, tensors, and which keys a query sees.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "op/field.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// Keys [begin, end) that a query sees: every mask and window leaves one run of keys.
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const noexcept { return end > begin ? end - begin : 0; }
};

/// Parameters of attention. For sequence b, head h with the keys and values of head h / (heads / kv_heads), and query i:
///
///   s_j = scale sum_c q_ic k_jc                         bias pre_scale:  scale (sum_c q_ic k_jc + bias_ij)
///   s_j = softcap tanh(s_j / softcap)                   if softcap is not 0
///   s_j = s_j + bias_ij                                 bias post_scale
///   s_j = s_j - slope_h |i + diagonal - j|              bias alibi, slope_h as in alibi_slope
///   lse_i = log(sum_j exp(s_j) + sink)                  sink: vanilla 0, off_by_one 1, learnable exp(softmax_offset_h)
///   o_i = sum_j exp(s_j - lse_i) v_j                    with dropout:  sum_j exp(s_j - lse_i) mask_ij / (1 - dropout) v_j
///   max_logit_i = max s_j                               without the sink
///
/// over the keys j that the query sees:
///
///   none                 all
///   causal               j <= i
///   causal_bottom_right  j <= i + keys - queries: the last query sees the last key
///   padding[_causal[_bottom_right]]  the same within the sequence's own lengths (ports q_lengths and kv_lengths);
///                        queries beyond are not judged
///   window_left, window_right        and i + diagonal - window_left <= j <= i + diagonal + window_right, -1 = no limit
///
/// diagonal is 0 for the causal masks that start in the top left corner, otherwise keys - queries. A query that sees
/// nothing has o = 0, lse = log(sink) and max_logit = -infinity.
///
/// Whose o and lse the backward pass reads: attention_bwd.hpp.
///
/// The dropout mask is an input (`given`), or the backend draws it from rng_seed (`drawn`, attention_dropout.hpp): 1 keeps
/// a weight, 0 drops it. 1 / (1 - dropout) is an FP32 number.
///
/// Layouts (q; k and v alike with their own lengths and heads):
///   bshd [batches, sq, heads, d]   sbhd [sq, batches, heads, d]   bhsd [batches, heads, sq, d]
///   thd  [tokens, heads, d]: the sequences one after another, each with as many tokens as it has queries (keys) and
///        beginning at a multiple of align
///
/// Packing, of bshd, sbhd and thd: q, k and v (or k and v) take turns in one buffer, gradients alike.
///   qkv_3hd [.., 3, heads, d]   qkv_h3d [.., heads, 3, d]   kv_2hd [.., 2, kv_heads, d]   kv_h2d [.., kv_heads, 2, d]
/// FP8: attention_fp8.hpp.
///
/// Source: TransformerEngine include/transformer_engine/fused_attn.h; pytorch/attention/dot_product_attention.
struct AttentionParams {
  std::int64_t batches = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 0;  ///< 0: as many as heads
  std::int64_t sq = 0;
  std::int64_t sk = 0;
  std::int64_t d = 0;
  std::int64_t dv = 0;  ///< 0: d
  double scale = 0;     ///< 0: 1 / sqrt(d), rounded to FP32
  std::string mask = "none";
  std::int64_t window_left = -1;
  std::int64_t window_right = -1;
  std::string bias = "none";        ///< none | pre_scale | post_scale | alibi
  std::string softmax = "vanilla";  ///< vanilla | off_by_one | learnable
  double softcap = 0;
  std::string layout = "bshd";
  std::string packing = "none";
  std::int64_t align = 1;
  double dropout = 0;                    ///< probability; 0: no mask
  std::string dropout_mask = "given";    ///< given | drawn
  std::int64_t rng_seed = 1;             ///< of a mask that is drawn
  bool max_logit = false;                ///< of the forward pass only
  std::string statistics = "reference";  ///< reference | device: whose o and lse the backward pass reads

  template <class V>
  void describe(V& v) {
    constexpr double kMaxOuter = 65535;
    constexpr double kMaxLength = 1 << 20;
    constexpr double kMaxHead = 1024;
    constexpr double kMaxFactor = 65504;  // FP16 holds it
    constexpr double kMaxAlign = 4096;
    constexpr double kMaxDropout = 0.99;
    constexpr double kMaxSeed = 1e15;
    v.integer("batches", "b", batches, {.minimum = 1, .maximum = kMaxOuter, .doc = "sequences"});
    v.integer("heads", "h", heads, {.minimum = 1, .maximum = kMaxOuter, .doc = "heads of queries"});
    v.integer("kv_heads", "hk", kv_heads,
              {.minimum = 0, .maximum = kMaxOuter, .doc = "heads of keys and values; 0: as many as queries have"});
    v.integer("sq", "sq", sq, {.minimum = 1, .maximum = kMaxLength, .required = true, .doc = "queries"});
    v.integer("sk", "sk", sk, {.minimum = 1, .maximum = kMaxLength, .required = true, .doc = "keys"});
    v.integer("d", "d", d,
              {.minimum = 1, .maximum = kMaxHead, .required = true, .doc = "channels of queries and keys"});
    v.integer("dv", "dv", dv,
              {.minimum = 0, .maximum = kMaxHead, .doc = "channels of values; 0: as many as keys have"});
    v.number("scale", "s", scale,
             {.minimum = -kMaxFactor, .maximum = kMaxFactor, .doc = "factor of the scores; 0: 1 / sqrt(d)"});
    v.choice("mask", "mask", mask,
             {"none", "causal", "causal_bottom_right", "padding", "padding_causal", "padding_causal_bottom_right"},
             "which keys a query sees; causal starts in the top left corner");
    v.integer("window_left", "wl", window_left,
              {.minimum = -1,
               .maximum = kMaxLength,
               .doc = "keys before the diagonal that are seen; -1: all. The diagonal ends in the bottom right corner, "
                      "but for causal and padding_causal, where it starts in the top left"});
    v.integer("window_right", "wr", window_right,
              {.minimum = -1, .maximum = kMaxLength, .doc = "keys after the same diagonal that are seen; -1: all"});
    v.choice("bias", "bias", bias, {"none", "pre_scale", "post_scale", "alibi"},
             "what is added to the scores: a tensor before or after scaling, or a slope per head");
    v.choice("softmax", "sm", softmax, {"vanilla", "off_by_one", "learnable"},
             "what the denominator has besides the keys: nothing, 1, or a number per head");
    v.number("softcap", "cap", softcap,
             {.minimum = 0, .maximum = kMaxFactor, .doc = "scores are limited to this by tanh; 0: no limit"});
    v.choice("layout", "layout", layout, {"bshd", "sbhd", "bhsd", "thd"},
             "order of the dimensions in memory; thd: sequences of different lengths one after another");
    v.choice("packing", "pack", packing, {"none", "qkv_3hd", "qkv_h3d", "kv_2hd", "kv_h2d"},
             "which tensors share a buffer, and how they take turns in it");
    v.integer("align", "al", align,
              {.minimum = 1, .maximum = kMaxAlign, .doc = "thd: sequences begin at multiples of this many tokens"});
    v.number("dropout", "drop", dropout,
             {.minimum = 0, .maximum = kMaxDropout, .doc = "probability that a weight is dropped; 0: no dropout"});
    v.choice("dropout_mask", "dm", dropout_mask, {"given", "drawn"},
             "the mask: an input, or what the backend draws from rng_seed, read back by a pass of its own");
    v.integer("rng_seed", "rs", rng_seed,
              {.minimum = 0, .maximum = kMaxSeed, .doc = "seed of the generator of a mask that is drawn"});
    v.boolean("max_logit", "max", max_logit, "forward: the largest score of each query is an output");
    v.choice("statistics", "st", statistics, {"reference", "device"},
             "backward: whose o and lse it reads; device: those of the backend's own forward pass, run before it");
  }

  [[nodiscard]] std::int64_t key_heads() const noexcept { return kv_heads == 0 ? heads : kv_heads; }
  [[nodiscard]] std::int64_t value_channels() const noexcept { return dv == 0 ? d : dv; }
  [[nodiscard]] bool has_lengths() const noexcept { return mask.starts_with("padding"); }
  /// Sequences have only the tokens that they need.
  [[nodiscard]] bool is_ragged() const noexcept { return layout == "thd"; }
  [[nodiscard]] bool packs_queries() const noexcept { return packing.starts_with("qkv_"); }
  [[nodiscard]] bool has_bias_tensor() const noexcept { return bias == "pre_scale" || bias == "post_scale"; }
  [[nodiscard]] bool has_dropout() const noexcept { return dropout != 0; }
  /// Whether the case runs attention_dropout before anything else.
  [[nodiscard]] bool draws_mask() const noexcept { return has_dropout() && dropout_mask == "drawn"; }
  /// Backward: whether the case runs the forward pass, too.
  [[nodiscard]] bool runs_forward() const noexcept { return statistics == "device"; }
  [[nodiscard]] bool is_causal() const noexcept { return mask.find("causal") != std::string::npos; }
  /// The factor that is used, an FP32 number.
  [[nodiscard]] double factor() const noexcept;
  /// 1 / (1 - dropout) as it is used, an FP32 number.
  [[nodiscard]] double keep_scale() const noexcept;
  /// Whether that is a power of two.
  [[nodiscard]] bool keeps_exactly() const noexcept;
  /// Column minus row of the diagonal, for a sequence with these lengths.
  [[nodiscard]] std::int64_t diagonal(std::int64_t queries, std::int64_t keys) const noexcept;
  /// What query i sees of a sequence with these lengths; for i beyond the last query, what it would see, which may be nothing.
  [[nodiscard]] KeyRange visible(std::int64_t i, std::int64_t queries, std::int64_t keys) const noexcept;
};

/// ALiBi's slope of a head, an FP32 number. With n the largest power of two up to `heads`: 2^(-8 (head + 1) / n) for the
/// first n heads; the others take every other slope of 2n heads: 2^(-4 (2 (head - n) + 1) / n).
/// Source: Press, Smith, Lewis, "Train Short, Test Long"; TransformerEngine get_alibi.
[[nodiscard]] double alibi_slope(std::int64_t head, std::int64_t heads) noexcept;

/// The formats of attention.
[[nodiscard]] std::span<const std::string_view> attention_modes() noexcept;

/// What both directions read: q, k, v, and where the parameters ask for them bias, softmax_offset, q_lengths, kv_lengths
/// and dropout_mask. A mask that is drawn is an output that is passed on.
[[nodiscard]] std::vector<Port> attention_inputs(const AttentionParams& p, const Mode& mode);

/// q_lengths and kv_lengths; nothing if all sequences are whole.
[[nodiscard]] std::vector<Port> attention_lengths(const AttentionParams& p);

/// dropout_mask [batches * heads, sq, sk]: one number per weight in the format of q, as libraries multiply it with the
/// weights.
[[nodiscard]] Port dropout_mask_port(const AttentionParams& p, const Mode& mode, Role role);

/// The bias, or its gradient: [heads, sq, sk].
[[nodiscard]] Port attention_bias_port(std::string_view name, Role role, const AttentionParams& p, const Mode& mode,
                                       std::string_view doc);

/// What is wrong with the parameters, whichever direction.
[[nodiscard]] std::vector<std::string> check_attention(std::string_view op, const AttentionParams& p);

/// Scores that are not masked, of all heads, for a case without lengths.
[[nodiscard]] double visible_scores(const AttentionParams& p);

}  // namespace numcheck::op
