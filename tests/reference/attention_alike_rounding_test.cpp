// Roundings to 16 bits that all of a row, or all rows of a head, have in common: what an emulated unfused kernel is off by is
// what the error models of attention allow, and was not without the fact in question.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "attention_rounding_case.hpp"
#include "model/eager_attention.hpp"
#include "tolerance/attention_bwd_slope.hpp"
#include "tolerance/attention_max_model.hpp"
#include "tolerance/attention_slope.hpp"

namespace numcheck::reference {
namespace {

using testing::fit_of;
using testing::kernel_of;
using testing::Outputs;
using testing::RoundingCase;
using testing::Unfused;

model::AttentionRounding declared(const Unfused& kernel) {
  return model::eager_rounding(kernel.p, *op::find_mode(kernel.mode));
}

model::ModelRequest request_of(const testing::Problem& problem, const model::AttentionRounding& rounding) {
  model::ModelRequest request;
  request.params = &problem.params;
  request.mode = op::find_mode(problem.mode);
  request.output = request.mode->first;
  request.rounding = rounding;
  return request;
}

/// sum y e / sum y^2
double slope_of(const op::Values& values, std::string_view port, const std::vector<double>& got) {
  const std::vector<double> wanted = testing::value_of(values, port);
  double product = 0, square = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    product += wanted[i] * (got[i] - wanted[i]);
    square += wanted[i] * wanted[i];
  }
  return product / square;
}

double of_rows(const RoundingCase& c, std::string_view port, const model::AttentionRounding& rounding) {
  return tolerance::slope_of_rows(request_of(c.backward, rounding), c.backward_values, port);
}

TEST(AttentionAlikeRounding, of_weights_that_are_all_the_same_is_a_slope) {
  Unfused kernel = kernel_of("bf16", "none", 0);
  kernel.p.sk = 13;  // 1 / 13 = 0.07692, and the nearest BF16 number is 0.29 % more
  const RoundingCase c(kernel, {"tiny scores", 1e-4});
  const Outputs got = kernel.backward(c.inputs);
  for (const char* port : {"dq", "dk"}) {
    const double slope = std::fabs(slope_of(c.backward_values, port, got.find(port)->second));
    EXPECT_GT(slope, 1e-3) << port << ": the case shows nothing";
    EXPECT_LE(slope, of_rows(c, port, declared(kernel))) << port;
    EXPECT_GT(slope, of_rows(c, port, {})) << port;
  }
}

TEST(AttentionAlikeRounding, of_scores_is_in_all_rows_of_a_head_if_there_are_few_queries) {
  double most = 0;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    Unfused kernel = kernel_of("bf16", "none", 0);
    kernel.p.sq = 1;
    const RoundingCase c(kernel, {"large scores", 4, 0.5 * seed});
    const Outputs got = kernel.backward(c.inputs);
    for (const char* port : {"dk", "dv"}) {
      const double slope = std::fabs(slope_of(c.backward_values, port, got.find(port)->second));
      EXPECT_LE(slope, of_rows(c, port, declared(kernel))) << port << ", seed " << seed;
      most = std::max(most, slope / of_rows(c, port, {}));
    }
  }
  EXPECT_GT(most, 1) << "no case shows anything";
}

TEST(AttentionAlikeRounding, of_changes_that_are_all_the_same_is_predicted) {
  Unfused kernel = kernel_of("bf16", "none", 0);
  kernel.p.dv = 36;  // dp is near 36.1, and the nearest BF16 number is 36
  RoundingCase c(kernel, {"near 1", 0.008, 1.003, 0.008, 0, 1, 0.008});
  std::ranges::for_each(c.inputs["do"], [](double& x) { x = core::round_to(x + 1, core::Dtype::bf16); });
  c.derive_again();
  const Outputs got = kernel.backward(c.inputs);
  for (const char* port : {"dq", "dk"}) {
    const testing::Fit fit = fit_of(c.backward, c.backward_values, port, got.find(port)->second, declared(kernel));
    EXPECT_LE(fit.worst, 1) << port;
    EXPECT_LE(fit.rms, 1.3) << port;
  }
  op::OutputValues& dq = *std::ranges::find(c.backward_values.outputs, "dq", &op::OutputValues::port);
  const auto replace = [&dq](tolerance::GradientFact fact, float by) {
    std::ranges::fill(dq.row_facts.at(static_cast<std::size_t>(fact)).span(), by);
  };
  replace(tolerance::GradientFact::alike_gradients, 0);
  replace(tolerance::GradientFact::gradient_spread, 1);
  EXPECT_GT(fit_of(c.backward, c.backward_values, "dq", got.find("dq")->second, declared(kernel)).rms, 1.3)
      << "the case shows nothing";
}

TEST(AttentionAlikeRounding, of_scores_beside_others_far_beyond_the_cap_is_predicted) {
  Unfused kernel = kernel_of("bf16", "none", 2);  // a post_scale bias
  kernel.p.softcap = 1;
  kernel.p.sq = 400;
  RoundingCase c(kernel, {"saturated", 20});
  for (std::size_t key = 0; key < 3; ++key) {  // small products, and a bias by which these keys weigh most
    std::fill_n(c.inputs["k"].begin() + static_cast<std::ptrdiff_t>(key) * kernel.p.d, kernel.p.d, 0x1p-7);
  }
  for (std::size_t n = 0; n < c.inputs["bias"].size(); ++n) {
    c.inputs["bias"][n] = n % static_cast<std::size_t>(kernel.p.sk) < 3 ? c.inputs["bias"][n] + 6 : c.inputs["bias"][n];
    c.inputs["bias"][n] = core::round_to(c.inputs["bias"][n], core::Dtype::bf16);
  }
  c.derive_again();
  const Outputs got = kernel.forward(c.inputs);
  const testing::Fit fit = fit_of(c.forward, c.forward_values, "lse", got.at("lse"), declared(kernel));
  EXPECT_LE(fit.worst, 1);
  EXPECT_LE(fit.rms, 1.3);
  EXPECT_GE(fit.rms, 0.3) << "the prediction is too large to see a fault";
}

TEST(AttentionAlikeRounding, may_make_another_score_the_largest) {
  op::AttentionFwdParams p;
  p.heads = p.sq = p.d = 1;
  p.sk = 2;
  p.scale = p.softcap = 1;
  p.bias = "post_scale";
  p.max_logit = true;
  const testing::Problem problem{&op::attention_fwd(), attention_fwd_reference(), op::to_params(p), "bf16"};
  // tanh 3.6 is 0.9985, in BF16 it is 1: the second score is -0.0015, as it is stored it is 0.
  const op::Values values =
      testing::evaluate(problem, {{"q", {1}}, {"k", {-0x1p-20, 3.59375}}, {"v", {1, 1}}, {"bias", {0, -1}}});
  const double error = -testing::value_of(values, "max_logit")[0];
  std::vector<float> bound(1), deviation(1);
  const auto predict = [&](const model::AttentionRounding& rounding) {
    tolerance::max_logit_error(request_of(problem, rounding), values, bound, deviation);
  };
  predict({});
  EXPECT_GT(error, 6 * static_cast<double>(deviation[0])) << "the case shows nothing";
  predict(model::eager_rounding(p, *op::find_mode("bf16")));
  EXPECT_LE(error, static_cast<double>(bound[0]));
  EXPECT_LE(error, 2 * static_cast<double>(deviation[0]));
}

TEST(AttentionAlikeRounding, of_scores_below_a_cap_that_are_few_numbers_is_predicted) {
  Unfused kernel = kernel_of("bf16", "none", 3);
  kernel.p.sq = 128;
  kernel.p.sk = 32;
  kernel.p.d = 64;
  RoundingCase c(kernel, {"near 8 / 30", 0.0625, 1, 0.0625, 1, 1, 0.0625});
  std::ranges::for_each(c.inputs["do"], [](double& x) { x = core::round_to(x + 1, core::Dtype::bf16); });
  c.derive_again();
  const Outputs got = kernel.backward(c.inputs);
  const auto rms = [&] {
    return fit_of(c.backward, c.backward_values, "dv", got.find("dv")->second, declared(kernel)).rms;
  };
  EXPECT_LE(rms(), 1.3);
  op::OutputValues& dv = *std::ranges::find(c.backward_values.outputs, "dv", &op::OutputValues::port);
  std::ranges::fill(dv.row_facts.at(static_cast<std::size_t>(tolerance::GradientFact::score_spread)).span(), 1.0F);
  EXPECT_GT(rms(), 1.3) << "the case shows nothing";
}

TEST(AttentionAlikeRounding, to_zero_is_all_of_a_row) {
  Unfused kernel = kernel_of("fp16", "none", 2);  // a learnable sink
  kernel.p.bias = "none";
  RoundingCase c(kernel, {"normal"});
  const auto largest_slope = [&] {
    return std::ranges::max(tolerance::row_slopes(request_of(c.backward, declared(kernel)), c.backward_values, "dq"));
  };
  EXPECT_LT(largest_slope(), 0.1F);
  c.inputs["softmax_offset"][0] = 22;  // weights of 10^-10, which FP16 does not hold: the first head's dq are 0
  c.derive_again();
  EXPECT_GE(largest_slope(), 1.0F);
}

TEST(AttentionAlikeRounding, that_leaves_nothing_of_dp_does_not_depend_on_what_is_left_of_its_gradient) {
  Unfused kernel = kernel_of("fp16", "none", 0);
  kernel.p.sk = 1;  // dp times 10 is D, but once dp is stored, nothing is left of it
  kernel.p.dropout = 0.9;
  const RoundingCase c(kernel, {"tiny gradients", 1, 0, 1e-7, 0, 1, 0.03});
  const testing::Fit fit =
      fit_of(c.backward, c.backward_values, "dq", kernel.backward(c.inputs).at("dq"), declared(kernel));
  EXPECT_LE(fit.worst, 1);
  EXPECT_LE(fit.rms, 1.3);
  EXPECT_GT(fit.rms, 0) << "the case shows nothing";
}

TEST(AttentionValueGradient, has_no_larger_errors_below_a_saturated_cap) {
  Unfused kernel = kernel_of("tf32", "none", 0);
  const auto largest_deviation = [&kernel](double cap) {
    kernel.p.softcap = cap;
    const RoundingCase c(kernel, {"scores of 50", 0.01, 0, 1, 3});
    model::ModelRequest request = request_of(c.backward, {});
    request.first_pattern.few_values = request.second_pattern.few_values = true;  // so that errors may be alike
    std::vector<float> bound(testing::value_of(c.backward_values, "dv").size()), deviation(bound.size());
    tolerance::attention_bwd_error(request, c.backward_values, "dv", bound, deviation);
    return std::ranges::max(deviation);
  };
  EXPECT_LE(largest_deviation(0.1), 1.5F * largest_deviation(1));
  EXPECT_LE(largest_deviation(1), largest_deviation(0));
}

TEST(AttentionAlikeRounding, of_a_scaled_bias_gradient_may_flush_it) {
  Unfused kernel = kernel_of("bf16", "none", 6);
  kernel.p.dropout = 0;
  kernel.p.scale = 0.1;
  const RoundingCase c(kernel, {"tiny gradients", 1, 0, 1e-36});
  const testing::Predicted errors = testing::predicted(c.backward, c.backward_values, "dbias", {.scaled_bias = true});
  for (const float bound : errors.bound) {
    EXPECT_GE(bound, 10 * 0x1p-126F);  // a tenth of it may have been less than the smallest normal number
  }
}

TEST(AttentionAlikeRounding, of_the_largest_weight_after_dropout_is_a_slope) {
  Unfused kernel = kernel_of("bf16", "none", 5);
  kernel.p.dropout = 0.15;  // 1 / 0.85 = 1.1765, and the nearest BF16 number is 0.27 % more
  const RoundingCase c(kernel, {"one key", 60});
  const double slope = slope_of(c.forward_values, "o", kernel.forward(c.inputs).at("o"));
  EXPECT_GT(std::fabs(slope), 1e-3) << "the case shows nothing";
  const model::ModelRequest request = request_of(c.forward, declared(kernel));
  EXPECT_LE(std::fabs(slope), tolerance::attention_shared_slope(request, c.forward_values, "o"));
}

TEST(AttentionAlikeRounding, of_a_cap_that_small_scores_do_not_feel_is_a_slope) {
  Unfused kernel = kernel_of("bf16", "none", 3);
  kernel.p.sq = 150;
  kernel.p.sk = 300;
  double most = 0;
  for (const double q : {0.5, 0.8, 1.0}) {
    const RoundingCase c(kernel, {"a cap of 30", q});
    const double slope = slope_of(c.forward_values, "o", kernel.forward(c.inputs).at("o"));
    const auto predicted = [&](const model::AttentionRounding& rounding) {
      return tolerance::attention_shared_slope(request_of(c.forward, rounding), c.forward_values, "o");
    };
    EXPECT_LE(std::fabs(slope), predicted(declared(kernel))) << q;
    EXPECT_LE(predicted(declared(kernel)), 1e-2) << q << ": the prediction is too large to see a fault";
    most = std::max(most, slope);
  }
  EXPECT_GT(most, 4e-4) << "the cases show nothing";
}

TEST(AttentionAlikeRounding, of_rows_of_which_nothing_is_known_leaves_a_number) {
  RoundingCase c(kernel_of("bf16", "none", 0), {"normal"});
  for (const char* port : {"dk", "dv"}) {
    op::OutputValues& output = *std::ranges::find(c.backward_values.outputs, port, &op::OutputValues::port);
    std::ranges::fill(output.row_facts.at(static_cast<std::size_t>(tolerance::GradientFact::statistic_square)).span(),
                      std::numeric_limits<float>::infinity());
    EXPECT_FALSE(std::isnan(of_rows(c, port, {}))) << port;
    EXPECT_FALSE(std::isnan(of_rows(c, port, declared(c.kernel)))) << port;
  }
}

TEST(AttentionAlikeRounding, in_fp16_may_overflow_between_two_steps_of_a_gradient) {
  Unfused kernel = kernel_of("fp16", "none", 0);
  kernel.p.softcap = 30;
  for (const double gradient : {1.0, 1e3}) {
    const RoundingCase c(kernel, {"large gradients", 1, 0, gradient});
    const testing::Predicted errors = testing::predicted(c.backward, c.backward_values, "dq", declared(kernel));
    const bool known = std::ranges::max(errors.bound) < std::numeric_limits<float>::max();
    EXPECT_EQ(known, gradient == 1.0) << gradient;
  }
}

}  // namespace
}  // namespace numcheck::reference
