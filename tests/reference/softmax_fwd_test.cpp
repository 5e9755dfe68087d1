// softmax_fwd by hand: values, masks, rounding of the scale, special values, and how tight its bounds are.
#include <cmath>
#include <initializer_list>
#include <limits>

#include <gtest/gtest.h>

#include "op/softmax_mask.hpp"
#include "softmax_problem.hpp"

namespace numcheck::reference {
namespace {

using testing::forward;
using testing::kInf;
using testing::noise;
using testing::rows_of;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

void expect_values(const op::OutputValues& got, std::initializer_list<double> expected) {
  ASSERT_EQ(got.value.size(), expected.size());
  std::size_t i = 0;
  for (const double y : expected) {
    if (std::isnan(y)) {
      EXPECT_TRUE(std::isnan(got.value[i])) << i;
    } else {
      EXPECT_NEAR(got.value[i], y, 1e-15 * std::fabs(y)) << i;
    }
    ++i;
  }
}

/// x where softmax is in proportion 1 : 2 : 4, as FP32 numbers would not be.
const std::vector<double> kDoubling = {0, std::log(2.0), std::log(4.0)};

TEST(SoftmaxFwd, by_hand) {
  expect_values(forward(rows_of(1, 3), {{"x", kDoubling}}), {1.0 / 7, 2.0 / 7, 4.0 / 7});
  op::SoftmaxFwdParams scaled = rows_of(1, 3);
  scaled.scale = -1;
  expect_values(forward(scaled, {{"x", kDoubling}}), {4.0 / 7, 2.0 / 7, 1.0 / 7});
  scaled.scale = 0;
  expect_values(forward(scaled, {{"x", kDoubling}}), {1.0 / 3, 1.0 / 3, 1.0 / 3});
  expect_values(forward(rows_of(2, 1), {{"x", {5, -1e30}}}), {1, 1});
}

TEST(SoftmaxFwd, large_scores_do_not_overflow) {
  expect_values(forward(rows_of(2, 2), {{"x", {1000, 1000, -5000, -5000}}}), {0.5, 0.5, 0.5, 0.5});
  expect_values(forward(rows_of(1, 2), {{"x", {3e38, -3e38}}}), {1, 0});
}

TEST(SoftmaxFwd, scores_beyond_fp32_are_infinite) {
  op::SoftmaxFwdParams p = rows_of(1, 2);
  p.scale = 2;
  expect_values(forward(p, {{"x", {3e38, 0}}}), {kNaN, kNaN});
  expect_values(forward(p, {{"x", {-3e38, 0}}}), {0, 1});
}

TEST(SoftmaxFwd, empty_rows) {
  EXPECT_EQ(forward(rows_of(0, 4), {{"x", {}}}).value.size(), 0U);
}

TEST(SoftmaxFwd, the_scale_is_rounded_to_the_tensors_format) {
  op::SoftmaxFwdParams p = rows_of(1, 2);
  p.scale = 0.13;
  const testing::Inputs x = {{"x", {0, 16}}};
  const auto second = [](double scale) { return 1 / (1 + std::exp(-16 * scale)); };
  const double exact = static_cast<double>(0.13F);
  const op::OutputValues bf16 = forward(p, x, "bf16");
  EXPECT_NEAR(bf16.value[1], second(0.1298828125), 1e-15);
  ASSERT_EQ(bf16.ideal.size(), 2U);
  EXPECT_NEAR(bf16.ideal[1], second(exact), 1e-15);
  EXPECT_EQ(bf16.ideal_note, "the scale 0.13 is rounded to bf16 first, as TransformerEngine does: 0.12988281");
  EXPECT_NEAR(forward(p, x, "fp16").value[1], second(0.1300048828125), 1e-15);
  for (const char* mode : {"fp32", "tf32"}) {
    const op::OutputValues wide = forward(p, x, mode);
    EXPECT_NEAR(wide.value[1], second(exact), 1e-15);
    EXPECT_TRUE(wide.ideal.empty());
  }
  p.scale_rounding = "ideal";
  EXPECT_NEAR(forward(p, x, "bf16").value[1], second(exact), 1e-15);
  EXPECT_TRUE(forward(p, x, "bf16").ideal.empty());
  p.scale_rounding = "as_implemented";
  p.scale = 0.125;
  EXPECT_TRUE(forward(p, x, "bf16").ideal.empty());
}

TEST(SoftmaxFwd, arbitrary_mask) {
  op::SoftmaxFwdParams p = rows_of(3, 3);
  p.mask = "arbitrary";
  const testing::Inputs inputs = {{"x", {1, 7, 1, 1, 2, 3, 0, 0, 9}}, {"mask", {0, 1, 0, 1, 1, 1, 0, 0, 1}}};
  for (const char* masked_value : {"te", "minus_infinity"}) {
    p.masked_value = masked_value;
    expect_values(forward(p, inputs), {0.5, 0, 0.5, 0, 0, 0, 0.5, 0.5, 0});
  }
}

TEST(SoftmaxFwd, a_mask_serves_all_heads_of_its_sequence) {
  op::SoftmaxFwdParams p = rows_of(1, 2);
  p.batches = p.heads = 2;
  p.mask = "arbitrary";
  expect_values(forward(p, {{"x", std::vector<double>(8, 0.0)}, {"mask", {1, 0, 0, 1}}}), {0, 1, 0, 1, 1, 0, 1, 0});
}

TEST(SoftmaxFwd, transformer_engine_replaces_a_score) {
  op::SoftmaxFwdParams p = rows_of(1, 2);
  p.mask = "arbitrary";
  const testing::Inputs inputs = {{"x", {-9999, 5}}, {"mask", {0, 1}}};
  const double e = std::exp(-1.0);
  expect_values(forward(p, inputs), {1 / (1 + e), e / (1 + e)});
  p.masked_value = "minus_infinity";
  expect_values(forward(p, inputs), {1, 0});
}

TEST(SoftmaxFwd, a_row_of_masked_scores_is_zero_even_if_others_are_smaller) {
  op::SoftmaxFwdParams p = rows_of(1, 2);
  p.mask = "arbitrary";
  expect_values(forward(p, {{"x", {-10500, 5}}, {"mask", {0, 1}}}), {0, 0});
}

TEST(SoftmaxFwd, a_score_within_its_error_of_the_replacement_settles_nothing) {
  op::SoftmaxFwdParams p = rows_of(1, 2);
  p.mask = "arbitrary";
  p.scale = 1.3;
  const double x = static_cast<double>(static_cast<float>(-10000 / 1.3));
  const op::OutputValues y = forward(p, {{"x", {x, 5}}, {"mask", {0, 1}}});
  EXPECT_GT(y.magnitude[0], 1e29F);
  EXPECT_GT(y.magnitude[1], 1e29F);
}

TEST(SoftmaxFwd, diagonals) {
  EXPECT_EQ(op::columns_before_diagonal(op::SoftmaxMask::none, 0, 2, 3), 3);
  EXPECT_EQ(op::columns_before_diagonal(op::SoftmaxMask::causal, 0, 2, 3), 1);
  EXPECT_EQ(op::columns_before_diagonal(op::SoftmaxMask::causal, 5, 9, 3), 3);
  EXPECT_EQ(op::columns_before_diagonal(op::SoftmaxMask::causal_bottom_right, 0, 2, 3), 2);
  EXPECT_EQ(op::columns_before_diagonal(op::SoftmaxMask::causal_bottom_right, 0, 3, 1), 0);
  op::SoftmaxFwdParams p = rows_of(2, 3);
  p.mask = "causal";
  const testing::Inputs zeros = {{"x", std::vector<double>(6, 0.0)}};
  expect_values(forward(p, zeros), {1, 0, 0, 0.5, 0.5, 0});
  p.mask = "causal_bottom_right";
  expect_values(forward(p, zeros), {0.5, 0.5, 0, 1.0 / 3, 1.0 / 3, 1.0 / 3});
  p.sq = 3;
  p.sk = 2;
  expect_values(forward(p, zeros), {0, 0, 1, 0, 0.5, 0.5});
  p.masked_value = "minus_infinity";
  expect_values(forward(p, zeros), {0, 0, 1, 0, 0.5, 0.5});
}

TEST(SoftmaxFwd, padding_of_the_bottom_right_mask_enters_the_sum) {
  op::SoftmaxFwdParams p = rows_of(1, 3);
  p.mask = "causal_bottom_right";
  const testing::Inputs low = {{"x", {-10000, -10000, -10000}}};
  expect_values(forward(p, low), {0.25, 0.25, 0.25});
  p.masked_value = "minus_infinity";
  expect_values(forward(p, low), {1.0 / 3, 1.0 / 3, 1.0 / 3});
}

TEST(SoftmaxFwd, special_values) {
  expect_values(forward(rows_of(1, 2), {{"x", {kNaN, 1}}}), {kNaN, kNaN});
  expect_values(forward(rows_of(1, 2), {{"x", {kInf, 1}}}), {kNaN, kNaN});
  expect_values(forward(rows_of(1, 2), {{"x", {-kInf, 1}}}), {0, 1});
  expect_values(forward(rows_of(1, 2), {{"x", {-kInf, -kInf}}}), {kNaN, kNaN});
  op::SoftmaxFwdParams p = rows_of(2, 2);
  p.mask = "causal";
  expect_values(forward(p, {{"x", {1, kNaN, 0, 0}}}), {1, 0, 0.5, 0.5});
  p = rows_of(2, 2);
  p.mask = "arbitrary";
  const testing::Inputs inputs = {{"x", {kNaN, 1, -kInf, 1}}, {"mask", {0, 1, 0, 1}}};
  expect_values(forward(p, inputs), {kNaN, kNaN, 0, 0});
  p.masked_value = "minus_infinity";
  expect_values(forward(p, inputs), {kNaN, kNaN, 0, 0});
  const testing::Inputs open = {{"x", {-kInf, -kInf, 0, 0}}, {"mask", {0, 0, 0, 0}}};
  expect_values(forward(p, open), {0, 0, 0.5, 0.5});
  p.masked_value = "te";
  expect_values(forward(p, open), {kNaN, kNaN, 0.5, 0.5});
}

/// FP32 arithmetic in order of the columns.
std::vector<double> in_fp32(const std::vector<double>& x, float scale) {
  float maximum = -std::numeric_limits<float>::infinity();
  for (const double each : x) {
    maximum = std::fmax(maximum, static_cast<float>(each) * scale);
  }
  float sum = 0;
  std::vector<float> terms;
  for (const double each : x) {
    terms.push_back(std::exp(static_cast<float>(each) * scale - maximum));
    sum += terms.back();
  }
  std::vector<double> y;
  for (const float term : terms) {
    y.push_back(static_cast<double>(term / sum));
  }
  return y;
}

TEST(SoftmaxFwd, bounds_cover_fp32_and_are_no_wider_than_the_closed_form) {
  constexpr double kUnit = 0x1p-24;
  for (const double sigma : {0.1, 1.0, 10.0, 1000.0, 1e5}) {
    constexpr std::size_t kColumns = 200;
    const std::vector<double> x = noise(kColumns, 5, sigma);
    op::SoftmaxFwdParams p = rows_of(1, kColumns);
    p.scale = 1.3;
    const auto scale = static_cast<double>(1.3F);
    const op::OutputValues y = forward(p, {{"x", x}});
    const std::vector<double> got = in_fp32(x, 1.3F);
    double m = -kInf, most = 0, mean_d = 0, mean_t = 0;
    for (const double each : x) {
      m = std::fmax(m, each * scale);
      most = std::fmax(most, std::fabs(each * scale));
    }
    for (std::size_t j = 0; j < kColumns; ++j) {
      mean_d += y.value[j] * (m - x[j] * scale);
      mean_t += y.value[j] * std::fabs(x[j] * scale);
    }
    for (std::size_t j = 0; j < kColumns; ++j) {
      const auto bound = static_cast<double>(y.magnitude[j]);
      EXPECT_LE(std::fabs(got[j] - y.value[j]), bound + 0x1p-150) << sigma << " " << j;
      // tensor_core_numerics 5.5 has 3 |d|; the documented 1.173 |d| ulp of __expf and the difference are 3.35 |d|.
      const double t = std::fabs(x[j] * scale), d = m - x[j] * scale;
      const double closed = 3.35 * (d + mean_d) + 14 + kColumns + t + most + mean_t;
      EXPECT_LE(bound, y.value[j] * kUnit * closed * 1.02 + 0x1p-124) << sigma << " " << j;
    }
  }
}

}  // namespace
}  // namespace numcheck::reference
