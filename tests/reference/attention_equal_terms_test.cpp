// Sums of terms that are next to equal, or of which many are: rounding errors of adding them are the same, and add up.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "attention_bwd_fit.hpp"
#include "attention_bwd_kernel.hpp"
#include "op/attention_bwd.hpp"
#include "op_problem.hpp"
#include "reference/equal_weights.hpp"
#include "reference/references.hpp"
#include "tolerance/attention_bwd_model.hpp"
#include "tolerance/attention_bwd_slope.hpp"
#include "tolerance/attention_products.hpp"

namespace numcheck::reference {
namespace {

using testing::Inputs;
using testing::Kernel;
using testing::Problem;
using tolerance::GradientFact;

double excess_of(const std::vector<double>& weights) {
  EqualWeights groups;
  for (const double weight : weights) {
    groups.add(weight);
  }
  return groups.excess();
}

TEST(EqualWeights, of_a_whole_sum_count_half) {
  EXPECT_NEAR(excess_of(std::vector<double>(64, 0.1)), (64 * 64 - 64) / 4.0, 1e-9);
}

TEST(EqualWeights, beside_a_large_one_count_in_full) {
  std::vector<double> weights(65, 1e-6);
  weights[0] = 1;
  EXPECT_NEAR(excess_of(weights), 64 * 64 - 64, 1);
  std::ranges::reverse(weights);
  EXPECT_NEAR(excess_of(weights), 64 * 64 - 64, 1) << "whatever the order";
}

TEST(EqualWeights, go_on_after_others) {
  std::vector<double> weights;
  for (const int head : {0, 1}) {
    for (int i = 0; i < 40; ++i) {
      weights.push_back(i < 8 ? 1.0 / (1 + i) + head * 0.01 : 1.0 / 64);
    }
    weights.push_back(0);  // dropped
  }
  const double part = 1.0 / std::accumulate(weights.begin(), weights.end(), 0.0);
  const double share = 1 - part / 2;
  EXPECT_NEAR(excess_of(weights), (64 * 64 - 64) * share * share, 1e-6);
}

TEST(EqualWeights, that_differ_by_more_than_an_ulp_of_the_sum_are_none) {
  std::vector<double> weights, alike;
  for (int i = 0; i < 100; ++i) {
    weights.push_back(1 + 0x1p-12 * i);
    alike.push_back(1 + 0x1p-30 * i);
  }
  EXPECT_EQ(excess_of(weights), 0);
  EXPECT_GT(excess_of(alike), 100 * 100 / 4.0 - 100);
}

TEST(RoundAlike, if_they_differ_by_half_an_ulp_of_their_sum) {
  const double ulp = 100 * 0x1p-24;
  EXPECT_TRUE(round_alike(100, 0.99 * ulp * ulp, 1));
  EXPECT_FALSE(round_alike(100, 1.01 * ulp * ulp, 1));
}

/// An FP32 kernel, and inputs that are all next to 0.7. Most queries see all keys, the first ones fewer.
struct Alike {
  Kernel kernel;
  Problem problem;
  Inputs inputs;
  op::Values values;

  Alike(double dropout, double spread) {
    kernel.p.sq = 600;
    kernel.p.sk = 5;
    kernel.p.d = 32;
    kernel.p.mask = "causal";
    kernel.p.layout = "bhsd";
    kernel.p.dropout = dropout;
    kernel.mode = "fp32";
    kernel.truncates = false;
    problem = {&op::attention_bwd(), attention_bwd_reference(), op::to_params(kernel.p), kernel.mode};
    inputs = testing::inputs_of(problem, kernel.format(), {"alike"});
    for (const char* port : {"q", "k", "v", "do"}) {
      std::ranges::transform(inputs[port], inputs[port].begin(),
                             [spread](double x) { return core::round_to(0.7 + spread * x, core::Dtype::fp32); });
    }
    for (const char* port : {"o", "lse"}) {
      inputs[port] = testing::derived(problem, inputs, port, std::vector<double>(inputs[port].size()));
      std::ranges::transform(inputs[port], inputs[port].begin(),
                             [](double x) { return core::round_to(x, core::Dtype::fp32); });
    }
    values = testing::evaluate(problem, inputs);
  }
  [[nodiscard]] const op::OutputValues& output(std::string_view port) const {
    return *std::ranges::find(values.outputs, port, &op::OutputValues::port);
  }
  [[nodiscard]] float fact(std::string_view port, GradientFact which) const {
    return std::ranges::max(output(port).row_facts.at(static_cast<std::size_t>(which)).span());
  }
  /// How many elements are rounded as one, as far as values tell.
  [[nodiscard]] double roundings(std::string_view port) const {
    return tolerance::attention_bwd_error_model(testing::request_of(problem, kernel.mode), port)
        .shared_roundings(values);
  }
  [[nodiscard]] double rms(std::string_view port) const {
    const model::ModelRequest request = testing::request_of(problem, kernel.mode);
    const testing::Gradients got = kernel.run(inputs);
    const testing::Fit fit = testing::fit_of(values, port, got.find(port)->second, request);
    EXPECT_LE(fit.worst, 1) << port;
    return fit.rms;
  }
};

TEST(AttentionEqualTerms, that_a_mask_leaves_among_others_are_predicted) {
  for (const double dropout : {0.0, 0.2}) {
    Alike alike(dropout, 1e-8);
    EXPECT_LE(alike.rms("dv"), tolerance::kAttentionKappa) << dropout;
    std::ranges::fill(
        alike.values.outputs.at(2).row_facts.at(static_cast<std::size_t>(GradientFact::equal_weights)).span(), 0.0F);
    ASSERT_EQ(alike.values.outputs.at(2).port, "dv");
    EXPECT_GT(alike.rms("dv"), tolerance::kAttentionKappa) << dropout << ": the case shows nothing";
  }
}

TEST(AttentionEqualTerms, of_values_are_predicted) {
  Alike alike(0, 1e-8);
  for (op::OutputValues& output : alike.values.outputs) {
    if (output.port != "dv") {
      EXPECT_LE(alike.rms(output.port), tolerance::kAttentionKappa) << output.port;
      EXPECT_EQ(alike.fact(output.port, GradientFact::equal_values), 1) << output.port;
    }
  }
}

// All elements have the error of dp, and whether it moves them to another number of 16 bits is one draw. (The own kernels' FP16
// dbias on an H200: 1.3 times as many flips as were allowed of independent ones.)
TEST(AttentionEqualTerms, of_values_are_rounded_as_one) {
  const Alike alike(0, 1e-8), different(0, 1e-3);
  for (const char* port : {"dq", "dk"}) {
    EXPECT_EQ(alike.roundings(port), static_cast<double>(alike.output(port).value.size())) << port;
    EXPECT_EQ(different.roundings(port), 1) << port;
  }
}

TEST(AttentionEqualTerms, of_a_few_rows_are_rounded_as_so_many_elements) {
  Alike alike(0, 1e-8);
  op::OutputValues& dq = *std::ranges::find(alike.values.outputs, "dq", &op::OutputValues::port);
  const std::span<float> rows = dq.row_facts.at(static_cast<std::size_t>(GradientFact::equal_values)).span();
  ASSERT_GE(rows.size(), 8U);
  std::ranges::fill(rows.subspan(3), 0.0F);
  EXPECT_EQ(alike.roundings("dq"), static_cast<double>(dq.value.size() / rows.size() * 3));
}

TEST(AttentionEqualTerms, are_none_of_inputs_that_differ) {
  for (const double spread : {1e-3, 1.0}) {
    const Alike different(0, spread);
    EXPECT_EQ(different.fact("dv", GradientFact::equal_weights), 0) << spread;
    EXPECT_EQ(different.fact("dq", GradientFact::equal_values), 0) << spread;
    EXPECT_EQ(different.fact("dk", GradientFact::equal_values), 0) << spread;
  }
}

TEST(AttentionEqualTerms, of_scores_are_those_of_numbers_that_are_next_to_the_same) {
  const auto are_alike = [](double spread, std::int64_t d) {
    const Alike alike(0, spread);
    const op::Operand q{.port = "q", .data = alike.inputs.at("q").data(), .rows = 600, .cols = 32};
    model::ModelRequest request;
    request.first = request.second = &q;
    return tolerance::products_are_alike(request, d);
  };
  EXPECT_TRUE(are_alike(1e-7, 32));
  EXPECT_FALSE(are_alike(1e-5, 32));
  EXPECT_TRUE(are_alike(1e-5, 1024)) << "an ulp of a longer sum is more of each of its terms";
  EXPECT_FALSE(tolerance::products_are_alike({}, 1024)) << "nothing is known of them";
}

}  // namespace
}  // namespace numcheck::reference
