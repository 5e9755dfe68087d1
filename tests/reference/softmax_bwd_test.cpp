// softmax_bwd by hand and by finite differences; inputs that are derived; row sums.
#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "op/softmax_mask.hpp"
#include "softmax_problem.hpp"

namespace numcheck::reference {
namespace {

using testing::backward;
using testing::forward;
using testing::gradient_rows_of;
using testing::noise;
using testing::rows_of;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(SoftmaxBwd, by_hand) {
  op::SoftmaxBwdParams p = gradient_rows_of(1, 2);
  p.scale = 2;
  const op::OutputValues dx = backward(p, {{"dy", {1, 3}}, {"y", {0.25, 0.75}}});
  EXPECT_EQ(dx.value[0], 2 * (0.25 - 0.25 * 2.5));
  EXPECT_EQ(dx.value[1], 2 * (2.25 - 0.75 * 2.5));
  EXPECT_GT(dx.magnitude[0], 0.0F);
  EXPECT_EQ(dx.terms[0], 2 * (0.25F + 0.25F * 2.5F));
  EXPECT_EQ(dx.terms[1], 2 * (2.25F + 0.75F * 2.5F));
  EXPECT_EQ(dx.term_count, 3);
}

TEST(SoftmaxBwd, the_scale_is_not_rounded) {
  op::SoftmaxBwdParams p = gradient_rows_of(1, 2);
  p.scale = 0.13;
  const testing::Inputs inputs = {{"dy", {1, 3}}, {"y", {0.25, 0.75}}};
  EXPECT_EQ(backward(p, inputs, "bf16").value[1], backward(p, inputs, "fp32").value[1]);
  EXPECT_NEAR(backward(p, inputs, "bf16").value[1], static_cast<double>(0.13F) * 0.375, 1e-16);
}

TEST(SoftmaxBwd, nothing_beyond_the_diagonal_is_read) {
  op::SoftmaxBwdParams p = gradient_rows_of(2, 2);
  p.mask = "causal";
  const op::OutputValues dx = backward(p, {{"dy", {1, kNaN, 1, 3}}, {"y", {1, 0, 0.5, 0.5}}});
  EXPECT_EQ(dx.value[0], 0);
  EXPECT_EQ(dx.value[1], 0);
  EXPECT_EQ(dx.value[2], -0.5);
  EXPECT_EQ(dx.value[3], 0.5);
}

// A subnormal y may be flushed to zero, which an infinity turns into NaN.
TEST(SoftmaxBwd, a_flushable_y_times_infinity_is_not_judged) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto asks_nothing = [](const op::OutputValues& dx, std::size_t i) {
    return std::isfinite(dx.value[i]) && std::isnan(dx.magnitude[i]);
  };
  const op::OutputValues dx =
      backward(gradient_rows_of(1, 4), {{"dy", {1, kInf, 1, 1}}, {"y", {0x1p-130, 0.25, 0.5, 0}}});
  EXPECT_TRUE(asks_nothing(dx, 0));
  EXPECT_TRUE(std::isnan(dx.value[1])) << "inf - inf";
  EXPECT_EQ(dx.value[2], -kInf);
  EXPECT_TRUE(std::isnan(dx.value[3])) << "zero times inf, in any arithmetic";
  const op::OutputValues all = backward(gradient_rows_of(1, 2), {{"dy", {kInf, 1}}, {"y", {0x1p-130, 1}}});
  EXPECT_TRUE(asks_nothing(all, 0) && asks_nothing(all, 1)) << "then their sum is as unknown";
  const op::OutputValues sound = backward(gradient_rows_of(1, 2), {{"dy", {2, 1}}, {"y", {0x1p-130, 1}}});
  EXPECT_FALSE(asks_nothing(sound, 0) || asks_nothing(sound, 1));
}

// dy - sum(y dy) may be beyond FP32 although y is small enough for the result.
TEST(SoftmaxBwd, differences_that_may_overflow_are_open) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  const op::OutputValues dx =
      backward(gradient_rows_of(1, 3), {{"dy", {-kLargest, kLargest, 1}}, {"y", {0, 0.5, 0.5}}});
  ASSERT_EQ(dx.open.size(), 1U);
  EXPECT_EQ(dx.open[0].begin, 0);
  EXPECT_EQ(dx.open[0].end, 2);
  EXPECT_EQ(dx.value[0], 0);
  const op::OutputValues one = backward(gradient_rows_of(1, 2), {{"dy", {1, 3}}, {"y", {0.25, 0.75}}});
  EXPECT_TRUE(one.open.empty());
}

TEST(SoftmaxBwd, is_the_derivative_of_the_forward_pass) {
  constexpr std::size_t kRows = 3;
  constexpr std::size_t kColumns = 5;
  const double step = 0x1p-17;
  for (const char* mask : {"none", "causal", "causal_bottom_right"}) {
    op::SoftmaxFwdParams p = rows_of(kRows, kColumns);
    p.scale = 0.75;
    p.mask = mask;
    op::SoftmaxBwdParams q = gradient_rows_of(kRows, kColumns);
    q.scale = p.scale;
    q.mask = mask;
    const std::vector<double> dy = noise(kRows * kColumns, 3);
    std::vector<double> x = noise(kRows * kColumns, 4);
    const auto loss = [&] {
      const op::OutputValues y = forward(p, {{"x", x}});
      double sum = 0;
      for (std::size_t i = 0; i < dy.size(); ++i) {
        sum += dy[i] * y.value[i];
      }
      return sum;
    };
    const op::OutputValues y = forward(p, {{"x", x}});
    const op::OutputValues dx = backward(q, {{"dy", dy}, {"y", {y.value.data(), y.value.data() + dy.size()}}});
    for (std::size_t i = 0; i < dy.size(); ++i) {
      const double centre = x[i];
      x[i] = centre + step;
      const double above = loss();
      x[i] = centre - step;
      const double below = loss();
      x[i] = centre;
      EXPECT_NEAR(dx.value[i], (above - below) / (2 * step), 1e-9) << mask << " " << i;
    }
  }
}

TEST(SoftmaxBwd, bounds_cover_fp32) {
  constexpr std::size_t kColumns = 300;
  op::SoftmaxFwdParams p = rows_of(1, kColumns);
  op::SoftmaxBwdParams q = gradient_rows_of(1, kColumns);
  q.scale = 0.3;
  const std::vector<double> dy = noise(kColumns, 6);
  const op::OutputValues y = forward(p, {{"x", noise(kColumns, 7)}});
  std::vector<double> stored;
  std::ranges::transform(y.value.span(), std::back_inserter(stored),
                         [](double v) { return static_cast<double>(static_cast<float>(v)); });
  const op::OutputValues dx = backward(q, {{"dy", dy}, {"y", stored}});
  float sum = 0;
  for (std::size_t j = 0; j < kColumns; ++j) {
    sum += static_cast<float>(dy[j]) * static_cast<float>(stored[j]);
  }
  for (std::size_t j = 0; j < kColumns; ++j) {
    const auto a = static_cast<float>(stored[j]);
    const float got = 0.3F * (static_cast<float>(dy[j]) * a - a * sum);
    EXPECT_LE(std::fabs(static_cast<double>(got) - dx.value[j]), static_cast<double>(dx.magnitude[j])) << j;
    EXPECT_LE(static_cast<double>(dx.magnitude[j]), 310 * 0x1p-24 * stored[j] * 1.5) << j;
  }
}

std::vector<double> derived(const op::Op& op, const op::Reference& reference, const op::Params& params,
                            std::string_view name, std::vector<double> draws) {
  const std::vector<op::Port> ports = op.ports(params, *op::find_mode("fp32"));
  reference.derive({&params, {}, &op::port_named(ports, name)}, draws);
  return draws;
}

TEST(SoftmaxInputs, masks_are_bytes_of_whatever_distribution) {
  constexpr std::int64_t kRows = 200;
  constexpr std::int64_t kColumns = 90;
  op::SoftmaxFwdParams p = rows_of(kRows, kColumns);
  p.mask = "arbitrary";
  for (const std::vector<double>& draws :
       {noise(kRows * kColumns, 1), noise(kRows * kColumns, 1, 1e20), std::vector<double>(kRows * kColumns, 100.0)}) {
    const std::vector<double> mask =
        derived(op::softmax_fwd(), softmax_fwd_reference(), op::to_params(p), "mask", draws);
    std::size_t masked = 0, whole = 0, single = 0;
    for (std::size_t i = 0; i < kRows; ++i) {
      const auto row = std::span(mask).subspan(i * kColumns, kColumns);
      const auto ones = static_cast<std::size_t>(std::ranges::count(row, 1.0));
      EXPECT_EQ(ones + static_cast<std::size_t>(std::ranges::count(row, 0.0)), row.size());
      whole += ones == row.size() ? 1 : 0;
      single += ones + 1 == row.size() && row.back() == 0 ? 1 : 0;
      masked += ones + 1 < row.size() ? ones : 0;
      EXPECT_TRUE(i > 0 || ones == row.size()) << "the first row is masked";
    }
    EXPECT_NEAR(static_cast<double>(whole), 1 + kRows / 16.0, 11);
    EXPECT_NEAR(static_cast<double>(single), kRows / 16.0, 11);
    const double others = static_cast<double>((kRows - whole - single) * kColumns);
    EXPECT_NEAR(static_cast<double>(masked) / others, 1.0 / 3, 0.02);
  }
}

TEST(SoftmaxInputs, the_backward_pass_gets_probabilities) {
  op::SoftmaxBwdParams p = gradient_rows_of(6, 9);
  p.batches = 2;
  p.scale = 0.5;
  for (const char* mask : {"none", "arbitrary", "causal", "causal_bottom_right"}) {
    p.mask = mask;
    const std::vector<double> y =
        derived(op::softmax_bwd(), softmax_bwd_reference(), op::to_params(p), "y", noise(108, 2));
    for (std::size_t row = 0; row < 12; ++row) {
      double sum = 0;
      for (std::size_t j = 0; j < 9; ++j) {
        const double each = y[row * 9 + j];
        EXPECT_GE(each, 0);
        sum += each;
        const auto columns =
            op::columns_before_diagonal(op::softmax_mask(mask), static_cast<std::int64_t>(row % 6), 6, 9);
        EXPECT_TRUE(j < static_cast<std::size_t>(columns) || each == 0);
      }
      const bool masked_row = p.mask == "arbitrary" && sum == 0;
      EXPECT_TRUE(masked_row || std::fabs(sum - 1) < 1e-14) << mask << " " << row;
      EXPECT_TRUE(masked_row || row % 6 != 0 || p.mask != "arbitrary");
    }
  }
}

/// Row sums of what was delivered for four rows of softmax.
std::vector<op::Finding> findings_for(double factor, std::size_t column) {
  constexpr std::size_t kColumns = 100;
  const op::Params params = op::to_params(rows_of(4, kColumns));
  const std::vector<double> x = noise(4 * kColumns, 8);
  op::Values expected;
  expected.outputs.push_back(forward(rows_of(4, kColumns), {{"x", x}}));
  const auto values = expected.outputs[0].value.span();
  std::vector<double> got(values.begin(), values.end());
  if (column < kColumns) {
    got[2 * kColumns + column] *= factor;
  } else {
    std::for_each(got.begin() + 2 * kColumns, got.begin() + 3 * kColumns, [factor](double& v) { v *= factor; });
  }
  const std::vector<op::Operand> inputs = {{"x", x.data(), 1, 4, kColumns, 1, core::Dtype::fp32}};
  const std::vector<op::Delivered> outputs = {{"y", got}};
  return softmax_fwd_reference().findings({&params, inputs, &expected, outputs});
}

TEST(SoftmaxRowSums, show_which_row_is_wrong) {
  const std::vector<op::Finding> clean = findings_for(1, 0);
  ASSERT_EQ(clean.size(), 2U);
  EXPECT_EQ(clean[0].name, "row sum");
  EXPECT_EQ(clean[0].limit, 1);
  EXPECT_LT(clean[0].measured, 1e-6);
  EXPECT_EQ(clean[1].name, "row sum spread");
  EXPECT_FALSE(std::isfinite(clean[1].limit));
  const std::vector<op::Finding> wrong = findings_for(1 + 0x1p-12, 100);
  EXPECT_GT(wrong[0].measured, 10);
  EXPECT_NE(wrong[0].text.find("worst row 2: 1.0002"), std::string::npos) << wrong[0].text;
  EXPECT_GT(wrong[1].measured, 10);
  EXPECT_FALSE(findings_for(kNaN, 3)[0].measured > 0) << "such a row fails elsewhere";
  EXPECT_LT(findings_for(1 + 0x1p-22, 100)[0].measured, 1) << "within what an FP32 sum may err";
}

TEST(SoftmaxFields, sizes_beyond_any_memory_are_mistakes) {
  op::SoftmaxFwdParams p = rows_of(1 << 20, 1 << 20);
  p.batches = p.heads = 65535;
  const auto mistakes = op::softmax_fwd().check(op::to_params(p), *op::find_mode("fp32"));
  ASSERT_EQ(mistakes.size(), 1U);
  EXPECT_EQ(mistakes[0], "softmax_fwd: batches * heads * sq * sk is 4.72e+21 elements; the limit is 2^40");
  EXPECT_TRUE(op::softmax_fwd().check(op::to_params(rows_of(4, 4)), *op::find_mode("fp32")).empty());
}

}  // namespace
}  // namespace numcheck::reference
