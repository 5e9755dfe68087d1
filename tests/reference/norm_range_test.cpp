// What FP32's range does to the gradients of LayerNorm and RMSNorm: overflows, which are not asked for, and what is lost below it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
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
using testing::value_of;
using Numbers = std::vector<double>;

const double kNan = std::nan("");
/// What is right of the outputs where dx is what the device has left.
std::vector<op::Settled> settle(const Problem& problem, const Inputs& rows, const op::Values& expected,
                                const Numbers& dx) {
  std::vector<op::Delivered> delivered;
  for (const op::OutputValues& output : expected.outputs) {
    const bool is_dx = output.port == "dx";
    delivered.push_back({.port = output.port, .value = is_dx ? std::span<const double>(dx) : output.value.span()});
  }
  return problem.reference.settle({&problem.params, operands_of(problem, rows), &expected, delivered, nullptr});
}

// What is finite all the same is right: nothing makes an infinity finite again.
TEST(NormRange, finite_results_are_judged_where_sums_may_overflow) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Inputs rows = {{"x", {1, 3, 0, 4}},
                       {"mu", {2, 2}},
                       {"rsigma", {0.5, 0.25}},
                       {"dz", {0x1p126, 0x1p126, 1, 1}},
                       {"gamma", {2, 4}}};
  for (const bool centred : {true, false}) {
    const Problem problem =
        centred ? problem_of(rows_of<op::LayernormBwdParams>(2, 2)) : problem_of(rows_of<op::RmsnormBwdParams>(2, 2));
    const op::Values values = evaluate(problem, rows);
    const op::OutputValues& dx = output_named(values, "dx");
    ASSERT_EQ(dx.open.size(), 1U);
    EXPECT_EQ(dx.open[0].begin, 0);
    EXPECT_EQ(dx.open[0].end, 2);
    EXPECT_FALSE(testing::undetermined(dx, 0)) << "but for what is infinite";
    ASSERT_EQ(output_named(values, "dgamma").open.size(), 1U);
    EXPECT_EQ(output_named(values, "dgamma").open[0].end, 2);
    EXPECT_TRUE(settle(problem, rows, values, {1, 2, 3, 4}).empty());
    const std::vector<op::Settled> lost = settle(problem, rows, values, {1, kNan, kInfinity, 4});
    ASSERT_EQ(lost.size(), 1U) << "the second row is not open";
    EXPECT_EQ(lost[0].element, 1U);
    EXPECT_FALSE(lost[0].asked);
  }
}

// An overflow of a row's sums leaves nothing finite in it; those of a column make NaN only if they have both signs.
TEST(NormRange, nan_that_no_overflow_makes_is_not_excused) {
  const Problem problem = problem_of(rows_of<op::LayernormBwdParams>(2, 3));
  const Inputs rows = {{"x", {1, 2, 3, 1, 2, 3}},
                       {"mu", {2, 2}},
                       {"rsigma", {1, 1}},
                       {"dz", {0x1p126, 0x1p126, 1, 0x1p126, 1, -0x1p126}},
                       {"gamma", {1, 1, 1}}};
  const auto asked = [&](std::string_view port, const Numbers& left, std::size_t element, const Inputs& given) {
    const op::Values values = evaluate(problem, given);
    std::vector<op::Delivered> delivered;
    for (const op::OutputValues& output : values.outputs) {
      const bool is_it = output.port == port;
      delivered.push_back({.port = output.port, .value = is_it ? std::span<const double>(left) : output.value.span()});
    }
    const auto all =
        problem.reference.settle({&problem.params, operands_of(problem, given), &values, delivered, nullptr});
    const auto found = std::ranges::find_if(all, [&](const op::Settled& settled) {
      return values.outputs[settled.output].port == port && settled.element == element;
    });
    return found == all.end() || found->asked;
  };
  EXPECT_TRUE(asked("dx", {1, 2, kNan, 1, 1, 1}, 2, rows)) << "the others are finite";
  EXPECT_FALSE(asked("dx", {1, kNan, 3, 1, 1, 1}, 1, rows)) << "dz gamma rsigma may be infinite by itself";
  EXPECT_FALSE(asked("dx", {kNan, kNan, kNan, 1, 1, 1}, 2, rows)) << "as if a sum had overflowed";
  EXPECT_TRUE(asked("dbeta", {kNan, 1, 1}, 0, rows)) << "sums of one sign";
  Inputs infinite = rows;
  infinite["dz"] = {std::numeric_limits<double>::infinity(), 0x1p126, 1, -0x1p126, 1, -0x1p126};
  EXPECT_FALSE(asked("dbeta", {kNan, 1, 1}, 0, infinite)) << "an infinity may meet one from an overflow";
}

std::size_t open_elements(const op::Values& values, std::string_view port) {
  std::size_t count = 0;
  for (const op::OutputValues::Range& range : output_named(values, port).open) {
    count += static_cast<std::size_t>(range.end - range.begin);
  }
  return count;
}

// (dz x) rsigma, as PyTorch's kernels have it, overflows where dz (x rsigma) does not.
TEST(NormRange, products_of_two_factors_may_overflow) {
  const Problem problem = problem_of(rows_of<op::RmsnormBwdParams>(2, 2));
  Inputs rows = {
      {"x", {0x1p80, 0x1p80, 1, 2}}, {"rsigma", {0x1p-80, 0.5}}, {"dz", {0x1p60, 1, 1, 3}}, {"gamma", {2, 4}}};
  const op::Values values = evaluate(problem, rows);
  EXPECT_EQ(open_elements(values, "dx"), 2U) << "the first row";
  EXPECT_EQ(open_elements(values, "dgamma"), 1U) << "the first column";
  EXPECT_EQ(value_of(values, "dgamma")[0], 0x1p60 + 0.5) << "and what is finite is judged";
  rows["dz"][0] = 0x1p40;
  EXPECT_EQ(open_elements(evaluate(problem, rows), "dx"), 0U);
}

// dz rsigma overflows where gamma is small: of that element only.
TEST(NormRange, the_gradient_times_rsigma_may_overflow) {
  const Inputs rows = {{"x", {0.125, -0.25}}, {"rsigma", {4}}, {"dz", {0x1p126, 1}}, {"gamma", {0x1p-130, 1}}};
  const op::Values values = evaluate(problem_of(rows_of<op::RmsnormBwdParams>(1, 2)), rows);
  EXPECT_EQ(open_elements(values, "dx"), 1U);
  EXPECT_EQ(output_named(values, "dx").open[0].begin, 0);
}

// rsigma^3 mean(dz gamma x), as cuDNN's kernels have it, overflows where x is small.
TEST(NormRange, the_coefficient_of_x_may_overflow) {
  Inputs rows = {{"x", {0x1p-10}}, {"rsigma", {0x1p9}}, {"dz", {0x1p113}}, {"gamma", {1}}};
  const Problem problem = problem_of(rows_of<op::RmsnormBwdParams>(1, 1));
  const op::Values values = evaluate(problem, rows);
  EXPECT_EQ(open_elements(values, "dx"), 1U);
  EXPECT_TRUE(std::isfinite(value_of(values, "dx")[0])) << "and what is finite is judged";
  rows["dz"] = {0x1p100};
  EXPECT_EQ(open_elements(evaluate(problem, rows), "dx"), 0U);
}

TEST(NormRange, products_of_two_factors_may_underflow) {
  const Inputs rows = {{"x", {0x1p-40}}, {"rsigma", {0x1p30}}, {"dz", {0x1p-105}}, {"gamma", {1}}};
  const op::Values values = evaluate(problem_of(rows_of<op::RmsnormBwdParams>(1, 1)), rows);
  const op::OutputValues& dgamma = output_named(values, "dgamma");
  EXPECT_EQ(dgamma.value[0], 0x1p-115);
  EXPECT_GE(dgamma.magnitude[0], 0x1p-119F) << "2^-149 of 2^-145, times rsigma";
  EXPECT_LT(dgamma.magnitude[0], 0x1p-118F);
}

// No more is lost of xh, far below FP32's numbers, than it has: what another row loses as well is seen beside a large gradient.
TEST(NormRange, what_is_too_small_loses_no_more_than_itself) {
  const Inputs rows = {{"x", {0x1p-120, 0x1p-60}}, {"rsigma", {0x1p-60, 1}}, {"dz", {0x1p120, 1}}, {"gamma", {1}}};
  const op::Values values = evaluate(problem_of(rows_of<op::RmsnormBwdParams>(2, 1)), rows);
  const op::OutputValues& dgamma = output_named(values, "dgamma");
  EXPECT_EQ(dgamma.value[0], 0x1p-60 + 0x1p-60);
  EXPECT_LT(dgamma.magnitude[0], 0x1.1p-59F) << "in either order, and not 2^-149 dz";
}

// With epsilon = 0, rsigma (1 - xh^2) is a rounding error times a large number, and so is its bound.
TEST(NormRange, nothing_is_asked_of_results_beyond_fp32_that_may_be_errors) {
  const Inputs rows = {{"x", {0x1.8p-133}}, {"rsigma", {0x1.5555p127}}, {"dz", {0x1p30}}, {"gamma", {1}}};
  const op::Values values = evaluate(problem_of(rows_of<op::RmsnormBwdParams>(1, 1, 0)), rows);
  EXPECT_TRUE(testing::undetermined(output_named(values, "dx"), 0)) << output_named(values, "dx").value[0];
}

}  // namespace
}  // namespace numcheck::reference
