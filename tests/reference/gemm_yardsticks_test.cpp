// Magnitude and deviation are never below the exact sums, and exceed them only a little.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "gemm_problem.hpp"

namespace numcheck::reference {
namespace {

using testing::GemmProblem;
using testing::noisy;

struct Exact {
  long double magnitude = 0;
  long double deviation = 0;
};

/// In 64-bit significands: FP32 operands have exact products there, and k 2^-64 is negligible beside 2^-24.
Exact exact_yardsticks(const GemmProblem& problem, std::int64_t flat) {
  const op::GemmParams& p = problem.gemm;
  const std::int64_t batch = flat / (p.m * p.n);
  const std::int64_t i = flat / p.n % p.m;
  const std::int64_t j = flat % p.n;
  const long double scale = std::abs(static_cast<long double>(p.alpha) * problem.a_scale * problem.b_scale);
  Exact exact;
  for (std::int64_t t = 0; t < p.k; ++t) {
    const long double product =
        scale * std::abs(static_cast<long double>(problem.first(batch, i, t)) * problem.second(batch, t, j));
    exact.magnitude += product;
    exact.deviation += product * product;
  }
  exact.deviation = std::sqrt(exact.deviation);
  if (p.beta != 0) {
    exact.magnitude += std::abs(static_cast<long double>(p.beta) * problem.c[static_cast<std::size_t>(flat)]);
  }
  if (p.bias) {
    exact.magnitude += std::abs(static_cast<long double>(problem.bias[static_cast<std::size_t>(j)]));
  }
  if (p.epilogue == "gelu") {
    exact.magnitude *= 1.13L;
    exact.deviation *= std::sqrt(1.28L);
  }
  return exact;
}

void expect_close_above(float got, long double exact, std::int64_t flat) {
  EXPECT_GE(static_cast<long double>(got), exact) << flat;
  EXPECT_LE(static_cast<long double>(got), exact * 1.001L + 2 * std::numeric_limits<float>::denorm_min()) << flat;
}

void check_all(GemmProblem& problem) {
  const op::Yardsticks yardsticks = gemm_reference().yardsticks(problem.request());
  ASSERT_FALSE(yardsticks.outputs.empty());
  const op::OutputYardsticks& d = yardsticks.outputs[0];
  const bool all = problem.sample.empty();
  const std::int64_t count =
      all ? problem.gemm.batch * problem.gemm.m * problem.gemm.n : static_cast<std::int64_t>(problem.sample.size());
  ASSERT_EQ(static_cast<std::int64_t>(d.magnitude.size()), count);
  ASSERT_EQ(static_cast<std::int64_t>(d.deviation.size()), count);
  for (std::size_t s = 0; s < d.magnitude.size(); ++s) {
    const std::int64_t flat = all ? static_cast<std::int64_t>(s) : problem.sample[s];
    const Exact exact = exact_yardsticks(problem, flat);
    expect_close_above(d.magnitude[s], exact.magnitude, flat);
    expect_close_above(d.deviation[s], exact.deviation, flat);
  }
}

TEST(GemmYardsticks, hold_by_hand) {
  GemmProblem problem{.gemm = {.m = 1, .n = 2, .k = 2, .alpha = -2, .beta = 3, .bias = true}};
  problem.a = {1, -2};
  problem.b = {3, -1, 4, 0};
  problem.c = {-1, 1};
  problem.bias = {0.5, -0.5};
  const op::Yardsticks yardsticks = gemm_reference().yardsticks(problem.request());

  EXPECT_NEAR(yardsticks.outputs[0].magnitude[0], 2 * 11 + 3 + 0.5, 1e-4);
  EXPECT_NEAR(yardsticks.outputs[0].magnitude[1], 2 * 1 + 3 + 0.5, 1e-4);
  EXPECT_NEAR(yardsticks.outputs[0].deviation[0], 2 * std::sqrt(9 + 64.0), 1e-4);
  EXPECT_NEAR(yardsticks.outputs[0].deviation[1], 2, 1e-4);
}

TEST(GemmYardsticks, never_fall_short) {
  for (const char* epilogue : {"none", "relu", "gelu"}) {
    GemmProblem problem = noisy({.m = 19,
                                 .n = 33,
                                 .k = 3000,
                                 .batch = 2,
                                 .trans_a = true,
                                 .trans_b = true,
                                 .alpha = -0.3,
                                 .beta = 0.7,
                                 .bias = true,
                                 .epilogue = epilogue});
    problem.a_scale = 0.01;
    check_all(problem);
    problem.sample = {0, 7, 600, 1253};
    check_all(problem);
  }
}

TEST(GemmYardsticks, wide_ranges_are_computed_in_double) {
  GemmProblem problem = noisy({.m = 8, .n = 8, .k = 64});
  for (std::size_t i = 0; i < problem.a.size(); ++i) {
    const int exponent = static_cast<int>(i % 100) - 50;
    problem.a[i] = std::ldexp(problem.a[i], exponent - 10);
    problem.b[i] = std::ldexp(problem.b[i], -exponent / 2 - 10);
  }
  // One row is far smaller than everything else: in FP32 its sum of squares would vanish.
  for (std::size_t t = 0; t < 64; ++t) {
    problem.a[t] = std::ldexp(0.75, -60);
  }
  check_all(problem);
}

TEST(GemmYardsticks, operands_far_from_one) {
  GemmProblem tiny = noisy({.m = 4, .n = 4, .k = 50});
  for (double& x : tiny.a) {
    x = std::ldexp(x, -70);
  }
  check_all(tiny);  // sums of squares underflow FP32, their roots do not

  GemmProblem scaled = noisy({.m = 4, .n = 4, .k = 50});
  for (std::size_t i = 0; i < scaled.a.size(); ++i) {
    scaled.a[i] = std::ldexp(scaled.a[i], 100);
    scaled.b[i] = std::ldexp(scaled.b[i], -90);
  }
  check_all(scaled);
}

TEST(GemmYardsticks, beyond_fp32_they_are_infinite) {
  GemmProblem problem{.gemm = {.m = 1, .n = 1, .k = 1}};
  problem.a = {0x1p50};
  problem.b = {0x1p50};
  const op::Yardsticks held = gemm_reference().yardsticks(problem.request());
  expect_close_above(held.outputs[0].magnitude[0], 0x1p100L, 0);
  expect_close_above(held.outputs[0].deviation[0], 0x1p100L, 0);

  problem.a = problem.b = {0x1p70};
  const op::Yardsticks beyond = gemm_reference().yardsticks(problem.request());
  EXPECT_EQ(beyond.outputs[0].magnitude[0], std::numeric_limits<float>::infinity());
  EXPECT_EQ(beyond.outputs[0].deviation[0], std::numeric_limits<float>::infinity());
}

TEST(GemmYardsticks, zeros_and_empty_reductions_stay_zero) {
  GemmProblem zeros{.gemm = {.m = 2, .n = 2, .k = 3}};
  zeros.a.assign(6, 0.0);
  zeros.b.assign(6, 0.0);
  const op::Yardsticks of_zeros = gemm_reference().yardsticks(zeros.request());
  GemmProblem empty{.gemm = {.m = 2, .n = 2, .k = 0, .beta = 2}};
  empty.c = {1, -2, 3, -4};
  const op::Yardsticks of_empty = gemm_reference().yardsticks(empty.request());

  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(of_zeros.outputs[0].magnitude[i], 0.0F);
    EXPECT_EQ(of_zeros.outputs[0].deviation[i], 0.0F);
    EXPECT_EQ(of_empty.outputs[0].deviation[i], 0.0F);
    expect_close_above(of_empty.outputs[0].magnitude[i], 2 * std::abs(empty.c[i]), static_cast<std::int64_t>(i));
  }
}

TEST(GemmYardsticks, amax_takes_the_largest) {
  GemmProblem problem = noisy({.m = 5, .n = 5, .k = 9, .output = "fp8_e4m3"});
  const op::Yardsticks yardsticks = gemm_reference().yardsticks(problem.request());
  float largest = 0;
  for (const float value : yardsticks.outputs[0].magnitude.span()) {
    largest = std::max(largest, value);
  }

  ASSERT_EQ(yardsticks.outputs.size(), 2U);
  EXPECT_EQ(yardsticks.outputs[1].port, "d_amax");
  EXPECT_EQ(yardsticks.outputs[1].magnitude[0], largest);
}

}  // namespace
}  // namespace numcheck::reference
