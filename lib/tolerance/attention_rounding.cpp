#include "tolerance/attention_rounding.hpp"

#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "tolerance/output_reduction.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::tolerance {
namespace {

double square(double x) {
  return x * x;
}

/// "a", "a and b", "a, b and c"
std::string enumerated(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t n = 0; n < names.size(); ++n) {
    text += n == 0 ? "" : n + 1 == names.size() ? " and " : ", ";
    text += names[n];
  }
  return text;
}

}  // namespace

ScoreRounding::ScoreRounding(const model::AttentionRounding& rounding, core::Dtype format, const op::AttentionParams& p,
                             bool few_values)
    : unit_(rounding.scores ? core::dtype_info(format).unit_roundoff : 0),
      square_((few_values ? 1 : kRoundVariance) * square(unit_)),
      tanh_(rounding.approximate_tanh && p.softcap != 0 ? kTanhError : 0),
      products_(p.bias == "pre_scale" ? 1 : 0),
      inner_((p.bias == "pre_scale" ? 2 : 1) + (p.softcap != 0 ? 3 : 0)),
      scores_(p.bias == "post_scale" || p.bias == "alibi" ? 1 : 0) {
  if (!rounding.scores) {
    return;
  }
  const double half = core::dtype_info(format).min_subnormal / 2;
  const double cap = std::fabs(p.softcap), scaled = p.bias == "pre_scale" ? 2 * std::fabs(p.factor()) : 0;
  lost_ = half * (scaled + 1 + (cap != 0 ? 2 * cap + 1 : 0) + scores_);
  lost_square_ = square(half) * (square(scaled) / 2 + 1 + (cap != 0 ? 2 * square(cap) + 1 : 0) + scores_);
}

double ScoreRounding::bound(const ScoreSquares& squares) const {
  const double inner = std::sqrt(squares.inner);
  return unit_ * (products_ * std::sqrt(squares.product) + inner_ * inner + scores_ * std::sqrt(squares.score)) +
         tanh_ * inner + lost_;
}

double ScoreRounding::variance(const ScoreSquares& squares) const {
  return square_ * (products_ * squares.product + inner_ * squares.inner + scores_ * squares.score) +
         tanh_ * tanh_ / 3 * squares.inner + lost_square_ / 3;
}

double ScoreRounding::bound(double largest) const {
  return (unit_ * (products_ + inner_ + scores_) + tanh_) * largest + lost_;
}

bool ScoreRounding::may_exchange_keys(double largest) const {
  constexpr double kDeviations = 6, kLargestError = 2;
  const double square_of_largest = square(largest);
  return kDeviations * std::sqrt(variance({square_of_largest, square_of_largest, square_of_largest})) > kLargestError;
}

model::AttentionRounding roundings_of(const model::AttentionRounding& declared, std::string_view port,
                                      const op::AttentionParams& p) {
  const bool of_weights = port == "o" || port == "dq" || port == "dk" || port == "dv" || port == "dbias";
  const bool of_scores = port == "dq" || port == "dk" || port == "dbias";
  const bool of_keys = port == "dk" || port == "dv";
  return {.scores = declared.scores,
          .weights = declared.weights && of_weights,
          .dropped_weights = declared.dropped_weights && of_weights && p.has_dropout(),
          .sink = declared.sink && p.softmax == "learnable" && port != "max_logit",
          .score_gradients = declared.score_gradients && of_scores,
          .head_gradients = declared.head_gradients && of_keys && p.key_heads() < p.heads,
          .scaled_bias = declared.scaled_bias && port == "dbias" && p.bias == "post_scale",
          .bias_sum = declared.bias_sum && port == "dbias" && p.batches > 1,
          .approximate_tanh = declared.approximate_tanh && p.softcap != 0};
}

std::string describe(const model::AttentionRounding& rounding, std::string_view format) {
  std::vector<std::string_view> stored;
  const auto add = [&stored](bool is, std::string_view name) {
    if (is) {
      stored.push_back(name);
    }
  };
  add(rounding.scores, "scores");
  add(rounding.weights, "weights");
  add(rounding.dropped_weights, "dropped weights");
  add(rounding.sink, "sinks");
  add(rounding.score_gradients, "gradients of scores");
  std::vector<std::string> parts;
  if (!stored.empty()) {
    parts.push_back(fmt::format("{} are stored in {}", enumerated(stored), format));
  }
  if (rounding.head_gradients) {
    parts.push_back(fmt::format("dk and dv of each head are stored in {} before they are added", format));
  }
  if (rounding.scaled_bias) {
    parts.push_back(fmt::format("each sequence's part is stored in {} times the scale", format));
  }
  if (rounding.bias_sum) {
    parts.push_back(fmt::format("the sum over sequences is kept in {}", format));
  }
  if (rounding.approximate_tanh) {
    parts.push_back(fmt::format("the tanh of the cap is an approximation (to {:g})", kTanhError));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace numcheck::tolerance
