// The reference of the bias gradient.
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "activation_problem.hpp"

namespace numcheck::reference {
namespace {

using testing::backward;
using testing::bias_gradient;
using testing::value_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargest = std::numeric_limits<float>::max();

TEST(BiasGrad, sums_columns) {
  const op::Values values = bias_gradient({.rows = 3, .hidden = 2}, {1, 10, 2, 20, 3, 30});
  ASSERT_EQ(values.outputs.size(), 1U);
  EXPECT_EQ(value_of(values), (std::vector<double>{6, 60}));
  const op::Values signs = bias_gradient({.rows = 3, .hidden = 2}, {1, 10, -2, 20, 3, 30});
  EXPECT_EQ(signs.outputs[0].terms[0], 6);
  EXPECT_EQ(signs.outputs[0].terms[1], 60);
  EXPECT_EQ(signs.outputs[0].term_count, 3);
}

TEST(BiasGrad, no_rows_give_zeros) {
  const op::Values values = bias_gradient({.rows = 0, .hidden = 3}, {});
  EXPECT_EQ(value_of(values), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(values.outputs[0].magnitude[0], 0);
}

TEST(BiasGrad, fused_sums_the_gradient) {
  for (const char* name : {"gelu", "silu", "relu", "qgelu", "srelu"}) {
    const std::vector<double> dy = {1, -2, 0.5, 3, 4, -1};
    const std::vector<double> x = {0.3, -0.2, 1.5, 2, -4, 0.1};
    const op::Values values = bias_gradient({.rows = 3, .hidden = 2, .fused = name}, dy, x);
    ASSERT_EQ(values.outputs.size(), 2U);
    const std::vector<double> dx = value_of(values);
    EXPECT_EQ(dx, value_of(backward({.kind = name}, dy, x))) << name;
    EXPECT_NEAR(value_of(values, 1)[0], dx[0] + dx[2] + dx[4], 1e-15) << name;
    EXPECT_NEAR(value_of(values, 1)[1], dx[1] + dx[3] + dx[5], 1e-15) << name;
  }
}

// 10^6 terms whose sum is 10^-6 of their magnitudes: a plain double sum would be off by 1e-11 of it.
TEST(BiasGrad, long_sums_lose_no_digits) {
  constexpr std::int64_t kRows = 1'000'000;
  std::vector<double> dy(kRows);
  for (std::size_t i = 0; i < dy.size(); i += 2) {
    const auto big = static_cast<double>(1 + 0.1F * static_cast<float>(i % 7));
    dy[i] = big;
    dy[i + 1] = 0x1p-20 - big;  // exact in double
  }
  EXPECT_EQ(value_of(bias_gradient({.rows = kRows, .hidden = 1}, dy))[0], 0x1p-20 * (kRows / 2));
}

// FP32 sums in three orders: the bound holds, and the variance is that of the least accurate one.
TEST(BiasGrad, bound_holds_for_fp32_sums_in_any_order) {
  constexpr std::size_t kRows = 4096;
  std::mt19937_64 engine(2);
  std::normal_distribution<double> normal(0.1, 1);
  double squares = 0;
  constexpr int kTrials = 40;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> dy(kRows);
    for (double& x : dy) {
      x = static_cast<double>(static_cast<float>(normal(engine)));
    }
    const op::Values values = bias_gradient({.rows = kRows, .hidden = 1}, dy);
    const op::OutputValues& out = values.outputs[0];
    float chain = 0;
    float backwards = 0;
    for (std::size_t i = 0; i < kRows; ++i) {
      chain += static_cast<float>(dy[i]);
      backwards += static_cast<float>(dy[kRows - 1 - i]);
    }
    for (const float sum : {chain, backwards}) {
      EXPECT_LE(std::fabs(static_cast<double>(sum) - out.value[0]), static_cast<double>(out.magnitude[0]));
    }
    const double error = static_cast<double>(chain) - out.value[0];
    squares += std::pow(error / static_cast<double>(out.deviation[0]), 2);
  }
  EXPECT_LT(std::sqrt(squares / kTrials), 1.5);
  EXPECT_GT(std::sqrt(squares / kTrials), 0.5);
}

// Equal terms have equal errors, and so do their partial sums: the variance must not treat them as independent.
TEST(BiasGrad, errors_of_equal_terms_add_up) {
  constexpr std::size_t kRows = 1000;
  const std::vector<double> x(kRows, static_cast<double>(0.3F));
  for (const float given : {0.1F, -0.7F, 3.3F}) {
    const std::vector<double> dy(kRows, static_cast<double>(given));
    const op::Values alone = bias_gradient({.rows = kRows, .hidden = 1}, dy);
    float chain = 0;
    for (std::size_t i = 0; i < kRows; ++i) {
      chain += given;
    }
    const double error = static_cast<double>(chain) - value_of(alone)[0];
    EXPECT_LE(std::fabs(error), 2 * static_cast<double>(alone.outputs[0].deviation[0])) << given;
    const op::Values fused = bias_gradient({.rows = kRows, .hidden = 1, .fused = "gelu"}, dy, x);
    const auto bound = static_cast<double>(fused.outputs[1].magnitude[0]);
    EXPECT_GE(static_cast<double>(fused.outputs[1].deviation[0]), bound / std::sqrt(6.0));
  }
}

TEST(BiasGrad, infinities_and_nan) {
  const op::Values values =
      bias_gradient({.rows = 2, .hidden = 4}, {kInfinity, kInfinity, std::nan(""), 1, 1, -kInfinity, 1, 2});
  EXPECT_EQ(value_of(values)[0], kInfinity);
  EXPECT_TRUE(std::isnan(value_of(values)[1]));
  EXPECT_TRUE(std::isnan(value_of(values)[2]));
  EXPECT_EQ(value_of(values)[3], 3);
}

// Partial sums that overflow in one order but not in another are not judged, which a NaN yardstick says.
TEST(BiasGrad, overflow_on_the_way_is_not_judged) {
  const op::Values values = bias_gradient({.rows = 3, .hidden = 2}, {kLargest, 1, kLargest, 1, -kLargest, 1});
  EXPECT_EQ(value_of(values)[0], kLargest);
  EXPECT_TRUE(std::isnan(values.outputs[0].magnitude[0]));
  EXPECT_FALSE(std::isnan(values.outputs[0].magnitude[1]));
}

TEST(BiasGrad, exact_leg_fits_the_rows) {
  const op::Mode& mode = *op::find_mode("fp32");
  const auto plan = [&](std::int64_t rows, const char* fused) {
    return op::bias_grad().exact_plan(op::to_params(op::BiasGradParams{.rows = rows, .hidden = 1, .fused = fused}),
                                      mode);
  };
  EXPECT_EQ(plan(100, "none").max_first, 15);
  EXPECT_EQ(plan(4'000'000, "none").max_first, 4);
  EXPECT_EQ(plan(std::int64_t{1} << 24, "relu").max_first, 1);
  EXPECT_EQ(plan(1'000'000, "srelu").max_first, 2);  // 10^6 terms of at most 2 * 2 * 2
  EXPECT_FALSE(plan(std::int64_t{1} << 24, "srelu").reason.empty());
  EXPECT_FALSE(plan(1, "gelu").reason.empty());
}

TEST(BiasGrad, says_what_output_and_cast_lack) {
  const auto mistake = [](const op::BiasGradParams& p) {
    const std::vector<std::string> mistakes = op::bias_grad().check(op::to_params(p), *op::find_mode("bf16"));
    return mistakes.empty() ? "" : mistakes.front();
  };
  EXPECT_NE(mistake({.rows = 1, .hidden = 1, .output = "fp32"}).find("with cast = true"), std::string::npos);
  EXPECT_NE(mistake({.rows = 1, .hidden = 1, .fused = "gelu", .cast = true}).find("anyway"), std::string::npos);
  EXPECT_NE(mistake({.rows = 1, .hidden = 1, .cast = true}).find("such as fp8_e4m3, not default"), std::string::npos);
  EXPECT_NE(mistake({.rows = 1, .hidden = 1, .cast = true, .output = "bf16"}).find("not bf16"), std::string::npos);
  EXPECT_NE(
      mistake({.rows = 1, .hidden = 1, .cast = true, .output = "fp8_e4m3", .layout = "columnwise"}).find("layout"),
      std::string::npos);
  EXPECT_EQ(mistake({.rows = 1, .hidden = 1, .cast = true, .output = "mxfp8_e5m2", .layout = "both"}), "");
  EXPECT_EQ(mistake({.rows = 1, .hidden = 1, .cast = true, .output = "fp8_e5m2", .layout = "both"}), "");
  EXPECT_EQ(mistake({.rows = 1, .hidden = 1, .fused = "silu", .output = "fp8_e4m3", .layout = "columnwise"}),
            "bias_grad: layout is both, or columnwise, for an MXFP8 dx, and both for an FP8 one, but columnwise is not "
            "for output fp8_e4m3");
  EXPECT_TRUE(mistake({.rows = 1, .hidden = 1, .fused = "silu", .layout = "both"}).ends_with("output default"));
  EXPECT_TRUE(mistake({.rows = 1, .hidden = 1, .layout = "both"}).ends_with("output default"));
}

TEST(BiasGrad, cast_keeps_dy_beside_the_sums) {
  const std::vector<double> dy = {1, 10, 2, 20, 3, 30};
  const op::Values values = bias_gradient({.rows = 3, .hidden = 2, .cast = true, .output = "fp8_e4m3"}, dy);
  ASSERT_EQ(values.outputs.size(), 2U);
  EXPECT_EQ(values.outputs[0].port, "dx");
  EXPECT_EQ(value_of(values), dy);
  EXPECT_EQ(values.outputs[0].magnitude[5], 0);
  EXPECT_EQ(value_of(values, 1), (std::vector<double>{6, 60}));
}

/// What is said of codes of dx, 2 x 3 and half as large as they are stored, beside dx_t.
std::vector<op::Finding> of_transpose(const std::vector<double>& dx, const std::vector<double>& dx_t) {
  const op::Params params =
      op::to_params(op::BiasGradParams{.rows = 2, .hidden = 3, .cast = true, .output = "fp8_e4m3", .layout = "both"});
  const std::vector<op::Delivered> outputs{{"dx", dx, core::Dtype::fp8_e4m3, 2, {}},
                                           {"dx_t", dx_t, core::Dtype::fp8_e4m3, 2, {}}};
  const op::Sample sample;
  const op::FindingRequest request{
      .params = &params, .inputs = {}, .expected = nullptr, .outputs = outputs, .sample = &sample};
  return bias_grad_reference().findings(request);
}

TEST(BiasGrad, transposed_codes_are_those_of_dx_bit_for_bit) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> dx{0.5, -0.0, kNan, 1, 1.75, 224};
  const auto right = of_transpose(dx, {0.5, 1, -0.0, 1.75, kNan, 224});
  ASSERT_EQ(right.size(), 1U);
  EXPECT_EQ(right[0].name, "transposed codes");
  EXPECT_EQ(right[0].port, "dx_t");
  EXPECT_EQ(right[0].measured, 0);
  EXPECT_EQ(right[0].limit, 0);
  EXPECT_EQ(of_transpose(dx, {0.5, 1, 0.0, 1.75, kNan, 224})[0].measured, 1) << "the sign of a zero";
  EXPECT_EQ(of_transpose(dx, dx)[0].measured, 4) << "not transposed";
  EXPECT_EQ(of_transpose(dx, {0.5, 1, -0.0, 1.75, 0, 224})[0].measured, 1) << "NaN lost";
}

TEST(BiasGrad, without_a_transpose_nothing_is_said_of_it) {
  const op::Params params = op::to_params(op::BiasGradParams{.rows = 1, .hidden = 1});
  const op::Sample sample;
  EXPECT_TRUE(bias_grad_reference()
                  .findings({.params = &params, .inputs = {}, .expected = nullptr, .outputs = {}, .sample = &sample})
                  .empty());
}

TEST(BiasGrad, a_transpose_has_the_numbers_and_errors_of_dx) {
  const std::vector<double> dy = {1, -2, 0.5, 3, 4, -1}, x = {0.3, -0.2, 1.5, 2, -4, 0.1};
  const op::Values values =
      bias_gradient({.rows = 3, .hidden = 2, .fused = "silu", .output = "fp8_e4m3", .layout = "both"}, dy, x);
  ASSERT_EQ(values.outputs.size(), 3U);
  EXPECT_EQ(values.outputs[1].port, "dx_t");
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      EXPECT_EQ(values.outputs[1].value[j * 3 + i], values.outputs[0].value[i * 2 + j]);
      EXPECT_EQ(values.outputs[1].magnitude[j * 3 + i], values.outputs[0].magnitude[i * 2 + j]);
      EXPECT_EQ(values.outputs[1].deviation[j * 3 + i], values.outputs[0].deviation[i * 2 + j]);
    }
  }
}

/// 33 rows whose largest magnitudes are 448 in one block of each column, and 3.5 in the other.
TEST(BiasGrad, mxfp8_codes_have_the_scales_of_their_blocks) {
  std::vector<double> dy(33, 448);
  dy[0] = 1;
  dy[32] = 3.5;
  const op::Values values =
      bias_gradient({.rows = 33, .hidden = 1, .cast = true, .output = "mxfp8_e4m3", .layout = "columnwise"}, dy);
  ASSERT_EQ(values.outputs.size(), 3U);
  EXPECT_EQ(values.outputs[0].port, "dx_columnwise");
  EXPECT_EQ(value_of(values), dy) << "each is a code times its scale";
  EXPECT_EQ(values.outputs[1].port, "dx_columnwise_scale_inv");
  EXPECT_EQ(value_of(values, 1), (std::vector<double>{1, 0x1p-7}));
  EXPECT_EQ(value_of(values, 2), (std::vector<double>{1 + 31 * 448 + 3.5}));
}

// dx is rounded to the format of dy before its block is scaled; the sum takes it before.
TEST(BiasGrad, mxfp8_gradients_are_rounded_once_before_they_are_scaled) {
  const std::vector<double> dy = {1, 1.5}, x = {0.7, 0.7};
  const op::Values plain = bias_gradient({.rows = 2, .hidden = 1, .fused = "silu"}, dy, x);
  const op::Values blocks = bias_gradient({.rows = 2, .hidden = 1, .fused = "silu", .output = "mxfp8_e4m3"}, dy, x);
  ASSERT_EQ(blocks.outputs.size(), 3U);
  EXPECT_EQ(value_of(blocks, 2), value_of(plain, 1));
  const double scale = value_of(blocks, 1)[0];
  EXPECT_NEAR(value_of(blocks)[0], value_of(plain)[0], scale * 32) << "half the spacing of codes from 256 to 448";
}

}  // namespace
}  // namespace numcheck::reference
