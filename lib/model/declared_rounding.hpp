// Where a library says that it rounds before the end: facts about one run of one algorithm, as its binding knows them.
#pragma once

#include <cstddef>
#include <vector>

namespace numcheck::model {

/// Roundings to the tensors' 16-bit format inside attention (u: its unit roundoff), and a less precise function. FP32 is
/// what op::AttentionParams promises for all of them. tolerance/attention_rounding.hpp has what each costs.
struct AttentionRounding {
  /// Every step of a score is stored: the product; with a pre_scale bias the sum and the scaled sum; with a cap the
  /// quotient, its tanh and their product; the sum with a post_scale bias or alibi.
  bool scores = false;
  bool weights = false;          ///< normalised weights exp(s - lse) are
  bool dropped_weights = false;  ///< weights are stored once more after dropout, and their gradients before it
  bool sink = false;             ///< softmax_offset is
  bool score_gradients = false;  ///< dp, ds and every step back from ds to what dq and dk are made of are
  bool head_gradients = false;  ///< dk and dv of each head are, before they are added to those of heads that share keys
  bool scaled_bias = false;     ///< a sequence's part of dbias is, multiplied by the scale, which is divided away later
  bool bias_sum = false;        ///< the running sum of dbias over sequences is, after each of them
  bool approximate_tanh = false;  ///< the tanh of the cap has a relative error of up to tolerance::kTanhError

  bool operator==(const AttentionRounding&) const = default;
};

/// Roundings that a backend declares. They make a result less precise than its mode promises, and are then warned about
/// instead of failed (lib/verdict/declared_rounding.hpp). The first four are about products, to the output's format.
struct DeclaredRounding {
  int slices =
      1;  ///< of k, summed in the output's format; 1: k is not split, or the slices are summed in FP32; the most
          ///< of any product
  bool in_place = false;  ///< the product is written to D before C is added to it there
  bool bias = false;      ///< a fused epilogue adds the bias, perhaps to the rounded sum
  bool gelu = false;      ///< a fused epilogue applies gelu, perhaps to the rounded sum and with an approximate tanh
  AttentionRounding attention = {};
  std::vector<int> group_slices = {};  ///< of every group of grouped_gemm; empty: they may have `slices` each

  /// Of a product, by its group.
  [[nodiscard]] int slices_of(std::size_t group) const {
    return group < group_slices.size() ? group_slices[group] : slices;
  }
  bool operator==(const DeclaredRounding&) const = default;
};

/// What two passes of a case declare together.
[[nodiscard]] constexpr AttentionRounding either(const AttentionRounding& a, const AttentionRounding& b) noexcept {
  return {.scores = a.scores || b.scores,
          .weights = a.weights || b.weights,
          .dropped_weights = a.dropped_weights || b.dropped_weights,
          .sink = a.sink || b.sink,
          .score_gradients = a.score_gradients || b.score_gradients,
          .head_gradients = a.head_gradients || b.head_gradients,
          .scaled_bias = a.scaled_bias || b.scaled_bias,
          .bias_sum = a.bias_sum || b.bias_sum,
          .approximate_tanh = a.approximate_tanh || b.approximate_tanh};
}

}  // namespace numcheck::model
