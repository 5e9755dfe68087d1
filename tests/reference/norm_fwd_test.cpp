// The forward references of LayerNorm and RMSNorm by hand: rows whose variance or mean square is a square.
#include <cmath>

#include <gtest/gtest.h>

#include "norm_problem.hpp"

namespace numcheck::reference {
namespace {

using testing::evaluate;
using testing::Inputs;
using testing::noise;
using testing::output_named;
using testing::problem_of;
using testing::rows_of;
using testing::value_of;
using Layernorm = op::LayernormFwdParams;
using Rmsnorm = op::RmsnormFwdParams;
using Numbers = std::vector<double>;

/// rsigma of a row without spread: epsilon is the FP32 number.
double rsigma_of_nothing(double epsilon) {
  return 1 / std::sqrt(static_cast<double>(static_cast<float>(epsilon)));
}

// Deviations -3 1 1 1: variance 3, and with an epsilon of 1 rsigma is 1/2.
const Inputs kRows = {{"x", {2, 6, 6, 6, -7, -11, -11, -11}}, {"gamma", {1, 2, -4, 0.5}}, {"beta", {10, 20, 30, 40}}};

TEST(LayernormFwd, by_hand) {
  const op::Values values = evaluate(problem_of(rows_of<Layernorm>(2, 4, 1)), kRows);
  ASSERT_EQ(values.outputs.size(), 3U);
  EXPECT_EQ(value_of(values, "y"), (Numbers{8.5, 21, 28, 40.25, 11.5, 19, 32, 39.75}));
  EXPECT_EQ(value_of(values, "mu"), (Numbers{5, -10}));
  EXPECT_EQ(value_of(values, "rsigma"), (Numbers{0.5, 0.5}));
  EXPECT_FALSE(output_named(values, "y").bit_exact);
  EXPECT_EQ(testing::terms_of(values, "y"), (Numbers{13.5, 31, 52, 42.75, 18.5, 41, 72, 45.25}));
  EXPECT_EQ(testing::terms_of(values, "mu"), (Numbers{5, 10}));
  EXPECT_TRUE(testing::terms_of(values, "rsigma").empty());
}

// Squares 1 1 1 9: mean square 3.
TEST(RmsnormFwd, by_hand) {
  const op::Values values =
      evaluate(problem_of(rows_of<Rmsnorm>(2, 4, 1)), {{"x", {1, 1, 1, 3, 3, -1, 1, -1}}, {"gamma", {1, 2, -4, 0.5}}});
  ASSERT_EQ(values.outputs.size(), 2U);
  EXPECT_EQ(value_of(values, "y"), (Numbers{0.5, 1, -2, 0.75, 1.5, -1, -2, -0.25}));
  EXPECT_EQ(value_of(values, "rsigma"), (Numbers{0.5, 0.5}));
}

TEST(NormFwd, zero_centred_gamma_is_one_more) {
  Layernorm p = rows_of<Layernorm>(2, 4, 1);
  p.zero_centered_gamma = true;
  Inputs rows = kRows;
  rows["gamma"] = {0, 1, -5, -0.5};
  EXPECT_EQ(value_of(problem_of(p), rows, "y"), (Numbers{8.5, 21, 28, 40.25, 11.5, 19, 32, 39.75}));
  Rmsnorm q = rows_of<Rmsnorm>(1, 4, 1);
  q.zero_centered_gamma = true;
  EXPECT_EQ(value_of(problem_of(q), {{"x", {1, 1, 1, 3}}, {"gamma", {0, 1, -5, -0.5}}}, "y"),
            (Numbers{0.5, 1, -2, 0.75}));
}

// 1 + 2^-8 and 1 + 3 2^-8 are ties of bf16: the even neighbours are 1 and 1 + 2^-6.
TEST(NormFwd, gamma_added_in_the_weights_format) {
  Layernorm p = rows_of<Layernorm>(1, 4, 1);
  p.zero_centered_gamma = true;
  p.gamma_add = "weight";
  const Inputs rows = {{"x", {2, 6, 6, 6}}, {"gamma", {0x1p-8, 0x3p-8, 1, 0}}, {"beta", {0, 0, 0, 0}}};
  const op::Values bf16 = evaluate(problem_of(p, "bf16"), rows);
  const Numbers exact = {-1.5 - 1.5 * 0x1p-8, 0.5 + 0x1.8p-8, 1, 0.5};
  EXPECT_EQ(value_of(bf16, "y"), (Numbers{-1.5, 0.5 + 0x1p-7, 1, 0.5}));
  EXPECT_EQ(testing::copied(output_named(bf16, "y").ideal), exact);
  EXPECT_EQ(output_named(bf16, "y").ideal_note, "gamma + 1 is rounded to bf16");
  const op::Values fp32 = evaluate(problem_of(p, "fp32"), rows);
  EXPECT_EQ(value_of(fp32, "y"), exact);
  EXPECT_TRUE(output_named(fp32, "y").ideal.empty());
  p.gamma_add = "fp32";
  const op::Values added = evaluate(problem_of(p, "bf16"), rows);
  EXPECT_EQ(value_of(added, "y"), exact);
  EXPECT_TRUE(output_named(added, "y").ideal.empty());
}

// Squares 1 1 9 25: rsigma is 1/3. In bf16 1/3 is 171/512 and 5/3 is 213/128.
TEST(RmsnormFwd, hugging_faces_order_rounds_in_between) {
  Rmsnorm p = rows_of<Rmsnorm>(1, 4, 0);
  p.gamma_order = "hf";
  const Inputs row = {{"x", {1, 1, 3, 5}}, {"gamma", {1, 2, 1, 3}}};
  const op::Values bf16 = evaluate(problem_of(p, "bf16"), row);
  const op::OutputValues& y = output_named(bf16, "y");
  EXPECT_EQ(value_of(bf16, "y"), (Numbers{171.0 / 512, 171.0 / 256, 1, 3 * 213.0 / 128}));
  EXPECT_EQ(y.ideal_note, "x rsigma is rounded to bf16 before gamma is applied");
  const Numbers ideal = {1.0 / 3, 2.0 / 3, 1, 5};
  for (std::size_t j = 0; j < ideal.size(); ++j) {
    EXPECT_NEAR(y.ideal[j], ideal[j], 1e-15);
  }
  p.gamma_order = "te";
  const Numbers te = value_of(problem_of(p, "bf16"), row, "y");
  EXPECT_EQ(te, testing::copied(y.ideal));
  p.gamma_order = "hf";
  p.zero_centered_gamma = true;
  p.gamma_add = "weight";
  EXPECT_EQ(output_named(evaluate(problem_of(p, "bf16"), row), "y").ideal_note,
            "x rsigma is rounded to bf16 before gamma is applied; gamma + 1 is rounded to bf16");
}

TEST(NormFwd, one_column) {
  const Inputs column = {{"x", {5, -0.25, 0}}, {"gamma", {3}}, {"beta", {7}}};
  const op::Values centred = evaluate(problem_of(rows_of<Layernorm>(3, 1)), column);
  EXPECT_EQ(value_of(centred, "y"), (Numbers{7, 7, 7}));
  EXPECT_EQ(value_of(centred, "mu"), (Numbers{5, -0.25, 0}));
  EXPECT_EQ(value_of(centred, "rsigma"), Numbers(3, rsigma_of_nothing(1e-5)));
  const Numbers y = value_of(problem_of(rows_of<Rmsnorm>(3, 1, 0.5)), column, "y");
  EXPECT_NEAR(y[0], 15 / std::sqrt(25.5), 1e-15 * y[0]);
  EXPECT_NEAR(y[1], -1, 1e-15);  // 1/16 + 1/2 = (3/4)^2
  EXPECT_EQ(y[2], 0);
}

TEST(NormFwd, odd_columns) {
  const Inputs row = {{"x", {1, 2, 3, 4, 5}}, {"gamma", Numbers(5, 3.0)}, {"beta", Numbers(5, 0.0)}};
  const Numbers y = value_of(problem_of(rows_of<Layernorm>(1, 5, 0.25)), row, "y");  // variance 2
  const Numbers z = value_of(problem_of(rows_of<Rmsnorm>(1, 5, 1)), row, "y");       // mean square 11
  for (std::size_t j = 0; j < 5; ++j) {
    EXPECT_NEAR(y[j], 2 * (static_cast<double>(j) - 2), 1e-15);
    EXPECT_NEAR(z[j], 3 * static_cast<double>(j + 1) / std::sqrt(12.0), 1e-15 * z[j]);
  }
}

TEST(NormFwd, no_rows) {
  const Inputs nothing = {{"x", {}}, {"gamma", {1, 2}}, {"beta", {1, 2}}};
  for (const op::OutputValues& output : evaluate(problem_of(rows_of<Layernorm>(0, 2)), nothing).outputs) {
    EXPECT_EQ(output.value.size(), 0U) << output.port;
  }
  for (const op::OutputValues& output : evaluate(problem_of(rows_of<Rmsnorm>(0, 2)), nothing).outputs) {
    EXPECT_EQ(output.value.size(), 0U) << output.port;
  }
}

TEST(LayernormFwd, constant_rows_are_beta) {
  for (const std::size_t n : {3U, 7U, 1000U}) {
    const auto value = static_cast<double>(1000.1F);
    const op::Values values =
        evaluate(problem_of(rows_of<Layernorm>(1, static_cast<std::int64_t>(n))),
                 {{"x", Numbers(n, value)}, {"gamma", Numbers(n, 5.0)}, {"beta", Numbers(n, 0.7)}});
    EXPECT_EQ(value_of(values, "mu"), Numbers{value});
    EXPECT_EQ(value_of(values, "rsigma"), Numbers{rsigma_of_nothing(1e-5)});
    EXPECT_EQ(value_of(values, "y"), Numbers(n, 0.7));
  }
}

/// Rows in FP32, sums in order of the columns, variance in two passes.
Numbers in_fp32(const Numbers& x, std::size_t cols, bool centred, const Numbers& gamma, const Numbers& beta) {
  Numbers y;
  const auto n = static_cast<float>(cols);
  for (std::size_t first = 0; first < x.size(); first += cols) {
    float mean = 0;
    for (std::size_t j = 0; centred && j < cols; ++j) {
      mean += static_cast<float>(x[first + j]);
    }
    mean /= n;
    float squares = 0;
    for (std::size_t j = 0; j < cols; ++j) {
      const float distance = static_cast<float>(x[first + j]) - mean;
      squares += distance * distance;
    }
    const float rsigma = 1.0F / std::sqrt(squares / n + 1e-5F);
    for (std::size_t j = 0; j < cols; ++j) {
      const float xh = (static_cast<float>(x[first + j]) - mean) * rsigma;
      y.push_back(
          static_cast<double>(xh * static_cast<float>(gamma[j]) + (centred ? static_cast<float>(beta[j]) : 0.0F)));
    }
  }
  return y;
}

// B covers FP32 arithmetic, is finite and not zero; a hundredth of it would not cover it.
TEST(NormFwd, bounds_cover_fp32) {
  constexpr std::size_t kRowCount = 40;
  constexpr std::size_t kColumns = 301;
  for (const double mean : {0.0, 16.0, 1000.0}) {
    const Inputs rows = {
        {"x", noise(kRowCount * kColumns, 1, 1, mean)}, {"gamma", noise(kColumns, 2)}, {"beta", noise(kColumns, 3)}};
    for (const bool centred : {true, false}) {
      const op::Values values = centred ? evaluate(problem_of(rows_of<Layernorm>(kRowCount, kColumns)), rows)
                                        : evaluate(problem_of(rows_of<Rmsnorm>(kRowCount, kColumns)), rows);
      const op::OutputValues& y = output_named(values, "y");
      const Numbers got = in_fp32(rows.at("x"), kColumns, centred, rows.at("gamma"), rows.at("beta"));
      double most = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const auto bound = static_cast<double>(y.magnitude[i]);
        ASSERT_TRUE(bound > 0 && std::isfinite(bound)) << i;
        most = std::max(most, std::fabs(got[i] - y.value[i]) / bound);
      }
      EXPECT_LE(most, 1) << centred << " " << mean;
      EXPECT_GE(most, 0.003) << centred << " " << mean;
      for (const float bound : output_named(values, "rsigma").magnitude.span()) {
        EXPECT_TRUE(bound > 0 && std::isfinite(bound));
      }
    }
  }
}

}  // namespace
}  // namespace numcheck::reference
