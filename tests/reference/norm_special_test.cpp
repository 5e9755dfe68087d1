// Forward norms of special values: what is required, and what is not judged.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "norm_problem.hpp"

namespace numcheck::reference {
namespace {

using testing::evaluate;
using testing::Inputs;
using testing::operands_of;
using testing::output_named;
using testing::Problem;
using testing::problem_of;
using testing::rows_of;
using testing::undetermined;
using testing::value_of;
using Layernorm = op::LayernormFwdParams;
using Rmsnorm = op::RmsnormFwdParams;
using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

bool all_nan(const Numbers& values, std::size_t first, std::size_t count) {
  for (std::size_t i = first; i < first + count; ++i) {
    if (!std::isnan(values.at(i))) {
      return false;
    }
  }
  return true;
}

TEST(NormFwd, special_values_stay_in_their_row) {
  const Numbers sound = {2, 6, 6, 6};
  const Numbers x = {2, 6,    6, 6, 1,         kInfinity, 2, 3,          2, 6, 6, 6,
                     1, kNan, 2, 3, kInfinity, 1,         2, -kInfinity, 2, 6, 6, 6};
  const Inputs rows = {{"x", x}, {"gamma", Numbers(4, 2.0)}, {"beta", Numbers(4, 1.0)}};
  const op::Values layernorm = evaluate(problem_of(rows_of<Layernorm>(6, 4, 1)), rows);
  const op::Values rmsnorm = evaluate(problem_of(rows_of<Rmsnorm>(6, 4, 1)), rows);
  const Numbers y = value_of(layernorm, "y");
  const Numbers z = value_of(rmsnorm, "y");
  for (const std::size_t row : {0U, 2U, 5U}) {
    EXPECT_EQ(Numbers(y.begin() + 4 * row, y.begin() + 4 * row + 4), (Numbers{-2, 2, 2, 2}));
    EXPECT_NEAR(z[4 * row], 4 / std::sqrt(29.0), 1e-15);
  }
  for (const std::size_t row : {1U, 3U, 4U}) {
    EXPECT_TRUE(all_nan(y, 4 * row, 4)) << row;
    EXPECT_TRUE(std::isnan(value_of(layernorm, "rsigma")[row]));
  }
  EXPECT_EQ(value_of(layernorm, "mu")[1], kInfinity);
  EXPECT_TRUE(std::isnan(value_of(layernorm, "mu")[3]));
  EXPECT_TRUE(std::isnan(value_of(layernorm, "mu")[4]));
  // An infinite mean square scales by 0: only 0 times infinity is NaN.
  EXPECT_EQ(value_of(rmsnorm, "rsigma")[1], 0);
  EXPECT_EQ(value_of(rmsnorm, "rsigma")[4], 0);
  EXPECT_EQ(z[4], 0);
  EXPECT_TRUE(std::isnan(z[5]));
  EXPECT_EQ(z[6], 0);
  EXPECT_TRUE(all_nan(z, 12, 4));
}

/// What is right of the outputs if the device has left these statistics, and y as expected.
std::vector<op::Settled> settle(const Problem& problem, const Inputs& inputs, const op::Values& expected,
                                const std::map<std::string, Numbers>& left) {
  std::vector<op::Delivered> delivered;
  for (const op::OutputValues& output : expected.outputs) {
    const auto given = left.find(std::string(output.port));
    const std::span<const double> values =
        given == left.end() ? output.value.span() : std::span<const double>(given->second);
    delivered.push_back({.port = output.port, .value = values});
  }
  const std::vector<op::Operand> operands = operands_of(problem, inputs);
  return problem.reference.settle({&problem.params, operands, &expected, delivered, nullptr});
}

bool is_open(const op::OutputValues& output, std::size_t i) {
  return std::ranges::any_of(output.open, [at = static_cast<std::int64_t>(i)](const op::OutputValues::Range& range) {
    return range.begin <= at && at < range.end;
  });
}

// The squares of 2^64 overflow in most kernels; the neighbouring row is not affected.
TEST(NormFwd, is_judged_where_squares_may_overflow) {
  const Inputs rows = {{"x", {0x1p64, -0x1p64, 1, 3}}, {"gamma", {1, 1}}, {"beta", {0.5, 0.25}}};
  const Problem problem = problem_of(rows_of<Layernorm>(2, 2, 0));
  const op::Values expected = evaluate(problem, rows);
  for (const char* port : {"y", "rsigma"}) {
    const op::OutputValues& output = output_named(expected, port);
    const std::size_t row = output.value.size() / 2;
    EXPECT_TRUE(is_open(output, 0) && !is_open(output, row)) << port;
    EXPECT_FALSE(undetermined(output, 0)) << port << ": finite statistics are judged";
  }
  EXPECT_FALSE(is_open(output_named(expected, "mu"), 0));
  EXPECT_NEAR(value_of(expected, "rsigma")[0], 0x1p-64, 0x1p-100);
  EXPECT_NEAR(value_of(expected, "y")[0], 1.5, 1e-6);
  EXPECT_TRUE(settle(problem, rows, expected, {}).empty()) << "nothing has overflowed";
  const std::vector<op::Settled> lost = settle(problem, rows, expected, {{"rsigma", {0, 1}}, {"y", {0.5, 0.25, 0, 1}}});
  ASSERT_EQ(lost.size(), 3U) << "rsigma and y of the first row";
  EXPECT_TRUE(std::ranges::all_of(lost, &op::Settled::asked));
  EXPECT_EQ(lost[0].value, 0);
  EXPECT_EQ(lost[1].value, 0.5) << "beta is left";
  EXPECT_EQ(lost[2].value, 0.25);
  EXPECT_TRUE(settle(problem, rows, expected, {{"rsigma", {kNan, 1}}}).empty()) << "E x^2 - mu^2 is no NaN for mu = 0";
}

TEST(NormFwd, may_be_right_beside_an_rsigma_that_overflowed) {
  const Inputs rows = {{"x", {0x1p64, -0x1p64, 1, 3}}, {"gamma", {1, 1}}, {"beta", {0.5, 0.25}}};
  const Problem problem = problem_of(rows_of<Layernorm>(2, 2, 0));
  const op::Values expected = evaluate(problem, rows);
  const auto judged_by = [&](const Numbers& y) {
    const std::vector<op::Settled> settled = settle(problem, rows, expected, {{"rsigma", {0, 1}}, {"y", y}});
    EXPECT_EQ(settled.size(), 3U);
    EXPECT_TRUE(std::ranges::all_of(settled, &op::Settled::asked));
    return Numbers{settled[1].value, settled[2].value};
  };
  EXPECT_EQ(judged_by({1.5, -0.75, 0, 1}), (Numbers{1.5, -0.75})) << "as if nothing had overflowed";
  EXPECT_EQ(judged_by({1.4, 0.2, 0, 1}), (Numbers{1.5, 0.25})) << "each element by itself";
  EXPECT_EQ(judged_by({0.6, 0.2, 0, 1}), (Numbers{0.5, 0.25}));
  EXPECT_EQ(judged_by({kNan, kNan, 0, 1}), (Numbers{0.5, 0.25}));
}

// Squares whose sum in natural order overflows; a kernel that merges means leaves finite statistics.
TEST(RmsnormFwd, is_judged_where_only_the_sum_in_natural_order_overflows) {
  constexpr std::size_t kHidden = 1024;
  const Inputs row = {{"x", Numbers(kHidden, 0x1p60)}, {"gamma", Numbers(kHidden, 2)}};
  const Problem problem = problem_of(rows_of<Rmsnorm>(1, kHidden, 0));
  const op::Values expected = evaluate(problem, row);
  ASSERT_FALSE(std::isfinite(output_named(expected, "y").deviation[0])) << "nothing is known of how far sums drift";
  const std::vector<op::Settled> settled =
      settle(problem, row, expected, {{"rsigma", {0x1p-60}}, {"y", Numbers(kHidden, 7)}});
  ASSERT_EQ(settled.size(), 1 + kHidden);
  EXPECT_TRUE(std::ranges::all_of(settled, &op::Settled::asked));
  EXPECT_EQ(settled[0].value, 0x1p-60);
  EXPECT_EQ(settled[1].value, 2);
  EXPECT_GT(settled[1].deviation, 0);
  EXPECT_LT(settled[1].magnitude, 0x1p-12) << "1023 sums, each off by 2^-24 of itself at most";
}

TEST(RmsnormFwd, is_zero_where_squares_overflow) {
  const Inputs rows = {{"x", {0x1p64, -0x1p64, 1, 3}}, {"gamma", {1, kInfinity}}};
  const Problem problem = problem_of(rows_of<Rmsnorm>(2, 2, 0));
  const op::Values expected = evaluate(problem, rows);
  EXPECT_TRUE(settle(problem, rows, expected, {{"rsigma", {kNan, 1}}}).empty()) << "squares make no NaN";
  const std::vector<op::Settled> lost = settle(problem, rows, expected, {{"rsigma", {0, 1}}, {"y", {0, kNan, 0, 1}}});
  ASSERT_EQ(lost.size(), 3U);
  EXPECT_EQ(lost[1].value, 0);
  EXPECT_TRUE(std::isnan(lost[2].value)) << "0 times infinity";
}

TEST(LayernormFwd, asks_nothing_of_rows_whose_sum_overflowed) {
  const Inputs rows = {{"x", {0x1p126, 0x1p126, 0x1p64, 3}}, {"gamma", {1, 1}}, {"beta", {0, 0}}};
  const Problem problem = problem_of(rows_of<Layernorm>(2, 2, 1));
  const op::Values expected = evaluate(problem, rows);
  EXPECT_TRUE(is_open(output_named(expected, "mu"), 0));
  EXPECT_FALSE(is_open(output_named(expected, "mu"), 1));
  EXPECT_FALSE(undetermined(output_named(expected, "mu"), 0)) << "a finite mean is judged";
  const auto asked = [&](double rsigma, double y) {
    const std::vector<op::Settled> lost =
        settle(problem, rows, expected, {{"mu", {kInfinity, 0x1p63}}, {"rsigma", {rsigma, 1}}, {"y", {kNan, y, 0, 1}}});
    return std::ranges::count_if(lost, &op::Settled::asked);
  };
  EXPECT_EQ(asked(kNan, kNan), 0);
  EXPECT_EQ(asked(0, kNan), 1) << "an rsigma of 0, which is right";
  EXPECT_EQ(asked(kNan, 7), 1) << "a finite y beside an infinite mean is 0 or as in other orders";
}

// x - mu overflows where rsigma is 0, and NaN plus an infinite beta is NaN.
TEST(LayernormFwd, asks_nothing_where_a_distance_from_the_mean_overflows) {
  const Inputs rows = {
      {"x", {0x1.8p127, -0x1.8p127, 1, 0x1p126}}, {"gamma", {1, 1, 1, 1}}, {"beta", {0, -kInfinity, -kInfinity, 0}}};
  const Problem problem = problem_of(rows_of<Layernorm>(1, 4, 1));
  const op::Values expected = evaluate(problem, rows);
  const std::vector<op::Settled> lost =
      settle(problem, rows, expected, {{"mu", {0x1p124}}, {"rsigma", {0}}, {"y", {0, -kInfinity, -kInfinity, 0}}});
  ASSERT_EQ(lost.size(), 5U);
  EXPECT_FALSE(lost[2].asked);
  EXPECT_TRUE(std::isfinite(lost[2].value)) << "an infinity would be expected whatever is asked";
  EXPECT_TRUE(lost[3].asked);
  EXPECT_EQ(lost[3].value, -kInfinity);
}

// Beside an infinity, those of an overflow may make NaN.
TEST(LayernormFwd, leaves_the_mean_of_infinities_and_sums_that_overflow_open) {
  const Inputs rows = {
      {"x", {-kInfinity, 0x1p127, 0x1p127, -kInfinity, 1, 2}}, {"gamma", {1, 1, 1}}, {"beta", {0, 0, 0}}};
  const op::Values expected = evaluate(problem_of(rows_of<Layernorm>(2, 3, 1)), rows);
  EXPECT_TRUE(undetermined(output_named(expected, "mu"), 0));
  EXPECT_FALSE(undetermined(output_named(expected, "mu"), 1));
}

/// y of the first column of the row 2 6 6 6, where (x - mu) rsigma is -1.5.
op::OutputValues first_of(double gamma, double beta) {
  op::Values values = evaluate(problem_of(rows_of<Layernorm>(1, 4, 1)),
                               {{"x", {2, 6, 6, 6}}, {"gamma", {gamma, 1, 1, 1}}, {"beta", {beta, 0, 0, 0}}});
  return std::move(values.outputs.front());
}

bool asks_nothing(const op::OutputValues& output, std::size_t i = 0) {
  return std::isfinite(output.value[i]) && std::isnan(output.magnitude[i]);
}

// gamma xh overflows by itself, but not inside a fused multiply-add.
TEST(LayernormFwd, is_not_judged_where_a_fused_add_decides) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  EXPECT_TRUE(asks_nothing(first_of(kLargest, kInfinity))) << "-inf + inf, or inf";
  EXPECT_TRUE(asks_nothing(first_of(-kLargest, -kLargest))) << "inf, or half of the largest number";
  EXPECT_EQ(first_of(kLargest, 1).value[0], -kInfinity) << "beyond FP32 either way";
  EXPECT_EQ(first_of(kLargest, -kInfinity).value[0], -kInfinity);
  EXPECT_EQ(first_of(kLargest / 2, kInfinity).value[0], kInfinity);
  EXPECT_TRUE(std::isnan(first_of(kInfinity, kInfinity).value[0])) << "an infinite gamma is infinite either way";
  EXPECT_FALSE(asks_nothing(first_of(1, 1)));
}

// Infinity times a number within its error of zero is NaN or infinite; with any other number, the result is known.
TEST(NormFwd, infinity_times_a_possible_zero_is_not_judged) {
  const Inputs rows = {{"x", {5, 1, 9, 5}}, {"gamma", Numbers(4, kInfinity)}, {"beta", Numbers(4, 0.0)}};
  const op::Values layernorm = evaluate(problem_of(rows_of<Layernorm>(1, 4, 1)), rows);
  const op::OutputValues& y = output_named(layernorm, "y");
  EXPECT_TRUE(asks_nothing(y, 0));
  EXPECT_TRUE(asks_nothing(y, 3));
  EXPECT_EQ(y.value[1], -kInfinity);
  EXPECT_EQ(y.value[2], kInfinity);
  const Inputs squares = {{"x", {0, 1e-45, 4, -4}}, {"gamma", Numbers(4, kInfinity)}};
  const op::Values rmsnorm = evaluate(problem_of(rows_of<Rmsnorm>(1, 4, 1)), squares);
  const op::OutputValues& z = output_named(rmsnorm, "y");
  EXPECT_TRUE(std::isnan(z.value[0])) << "zero stays zero";
  EXPECT_TRUE(asks_nothing(z, 1)) << "it may underflow on its way";
  EXPECT_EQ(z.value[2], kInfinity);
  EXPECT_EQ(z.value[3], -kInfinity);
}

}  // namespace
}  // namespace numcheck::reference
