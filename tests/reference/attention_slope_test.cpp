// By how much correct attention may be too large or too small as a whole, against what rounded weights make of it.
#include "tolerance/attention_slope.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "op/attention_fwd.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::Inputs;
using testing::noise;
using testing::Problem;
using Numbers = std::vector<double>;

/// Attention of one head, layout bhsd, and what the model says of it.
struct Attention {
  Problem problem;
  op::Values values;
  model::ModelRequest request;

  Attention(const op::AttentionParams& p, const char* mode, const Inputs& inputs)
      : problem{&op::attention_fwd(), attention_fwd_reference(), op::to_params(p), mode},
        values(testing::evaluate(problem, inputs)) {
    request.params = &problem.params;
    request.mode = op::find_mode(mode);
    request.output = request.mode->first;
  }
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  [[nodiscard]] Numbers o() const { return testing::value_of(values, "o"); }
  [[nodiscard]] double slope() const { return tolerance::attention_shared_slope(request, values); }
  [[nodiscard]] std::vector<float> of_queries() const { return tolerance::query_slopes(request, values); }
};

op::AttentionParams params(std::int64_t queries, std::int64_t keys, std::int64_t channels) {
  op::AttentionParams p;
  p.sq = queries, p.sk = keys, p.d = channels, p.layout = "bhsd";
  return p;
}

Numbers drawn(std::int64_t count, unsigned seed, core::Dtype format) {
  Numbers x = noise(static_cast<std::size_t>(count), seed, 1, 0);
  std::ranges::transform(x, x.begin(), [format](double value) { return core::round_to(value, format); });
  return x;
}

double slope_of(const Numbers& got, const Numbers& expected) {
  double product = 0, square = 0;
  for (std::size_t n = 0; n < expected.size(); ++n) {
    product += expected[n] * (got[n] - expected[n]);
    square += expected[n] * expected[n];
  }
  return product / square;
}

// Scores of -0.002 beside a sink of 0: exp(s) is 0.998 in all queries, which BF16 rounds to 0.996. The key has the largest
// weight, but that is not 1.
TEST(AttentionSlope, of_weights_relative_to_a_larger_sink_counts_their_rounding) {
  op::AttentionParams p = params(40, 1, 8);
  p.softmax = "off_by_one";
  p.scale = 0.1;
  const Numbers v = {1, -1, 2, 3, -2, 0.5, 1, 7};
  const double q = core::round_to(-0.0025, core::Dtype::bf16);
  const Attention attention(p, "bf16", {{"q", Numbers(40 * 8, q)}, {"k", Numbers(8, 1)}, {"v", v}});
  const double weight = std::exp(0.1 * 8 * q), rounded = core::round_to(weight, core::Dtype::bf16);
  Numbers got;
  for (std::size_t n = 0; n < std::size_t{40} * 8; ++n) {
    got.push_back(rounded * v[n % 8] / (1 + weight));
  }
  const double slope = std::fabs(slope_of(got, attention.o()));
  EXPECT_GT(slope, 1.5e-3);
  EXPECT_GE(attention.slope(), slope);
  for (const float of_query : attention.of_queries()) {
    EXPECT_GE(of_query, slope);
    EXPECT_LE(of_query, 0x1p-8F);
  }
}

// BF16 rounds 1 / (1 - 0.15) by 0.27 %, which is in the largest weight of every row. What is left of all of o is p^2 / sum p^2
// of that, far more than the weight's share p of the weights.
TEST(AttentionSlope, of_dropout_counts_the_rounding_of_the_largest_weights) {
  constexpr std::int64_t kQueries = 256, kKeys = 256, kChannels = 64;
  op::AttentionParams p = params(kQueries, kKeys, kChannels);
  p.dropout = 0.15;
  Inputs inputs = {{"q", drawn(kQueries * kChannels, 1, core::Dtype::bf16)},
                   {"k", drawn(kKeys * kChannels, 2, core::Dtype::bf16)},
                   {"v", drawn(kKeys * kChannels, 3, core::Dtype::bf16)}};
  const Problem problem{&op::attention_fwd(), attention_fwd_reference(), op::to_params(p), "bf16"};
  inputs["dropout_mask"] =
      testing::derived(problem, inputs, "dropout_mask", drawn(kQueries * kKeys, 4, core::Dtype::fp32));
  const Attention attention(p, "bf16", inputs);
  const double error = core::round_to(1 / 0.85, core::Dtype::bf16) * 0.85 - 1;
  const Numbers &q = inputs["q"], &k = inputs["k"], &v = inputs["v"], &mask = inputs["dropout_mask"];
  const Numbers o = attention.o();
  const std::vector<float> slopes = attention.of_queries();
  double mean = 0, predicted = 0;
  for (std::int64_t i = 0; i < kQueries; ++i) {
    Numbers weights;
    double total = 0;
    for (std::int64_t j = 0; j < kKeys; ++j) {
      double score = 0;
      for (std::int64_t c = 0; c < kChannels; ++c) {
        score += q[static_cast<std::size_t>(i * kChannels + c)] * k[static_cast<std::size_t>(j * kChannels + c)];
      }
      weights.push_back(std::exp(score * p.factor()));
      total += weights.back();
    }
    const auto largest = static_cast<std::size_t>(std::ranges::max_element(weights) - weights.begin());
    const double more = weights[largest] / total * mask[static_cast<std::size_t>(i * kKeys) + largest] / 0.85 * error;
    Numbers expected, got;
    for (std::size_t c = 0; c < kChannels; ++c) {
      expected.push_back(o[static_cast<std::size_t>(i * kChannels) + c]);
      got.push_back(expected.back() + more * v[largest * kChannels + c]);
    }
    mean += slope_of(got, expected) / kQueries;
    predicted += static_cast<double>(slopes[static_cast<std::size_t>(i)]) / kQueries;
  }
  EXPECT_GT(std::fabs(mean), 2e-4);
  EXPECT_GT(predicted, 0.9 * std::fabs(mean));
  EXPECT_LT(predicted, 2 * std::fabs(mean)) << "the prediction is too large to see a fault";
  EXPECT_NEAR(attention.slope(), predicted, 0.5 * predicted);
}

// FP16 holds nothing of weights of exp(-24) beside a sink of 0, so that nothing is known of these queries. Others are known.
TEST(AttentionSlope, of_queries_that_are_lost_beside_a_sink_widens_no_others) {
  constexpr std::int64_t kQueries = 64;
  op::AttentionParams p = params(kQueries, 2, 8);
  p.softmax = "off_by_one";
  p.scale = 1;
  Numbers q(kQueries * 8);
  for (std::size_t i = 0; i < kQueries; ++i) {
    q[i * 8] = i % 2 == 0 ? -24 : 1 + static_cast<double>(i) / 64;
  }
  Numbers k(16);
  k[0] = 1, k[8] = 1.125;
  const Attention attention(p, "fp16", {{"q", q}, {"k", k}, {"v", drawn(16, 3, core::Dtype::fp16)}});
  EXPECT_GT(std::ranges::max(attention.of_queries()), 10);
  EXPECT_LT(attention.slope(), 1e-3);
}

// Nothing is rounded in FP32, and nothing is computed of its elements to say so.
TEST(AttentionSlope, of_fp32_is_nothing) {
  const op::AttentionParams p = params(3, 5, 8);
  const Inputs inputs = {{"q", drawn(24, 1, core::Dtype::fp32)},
                         {"k", drawn(40, 2, core::Dtype::fp32)},
                         {"v", drawn(40, 3, core::Dtype::fp32)}};
  Attention attention(p, "fp32", inputs);
  attention.request.expected = model::PrecisionClass::fp32;
  EXPECT_EQ(attention.slope(), 0);
}

}  // namespace
}  // namespace numcheck::reference
