// The reference of amaxes and of the scales that follow from them, by hand.
#include "op/amax.hpp"

#include <cfloat>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::evaluate;
using testing::Problem;
using testing::value_of;
using Numbers = std::vector<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMost = FLT_MAX;

Problem problem_of(const op::AmaxParams& p) {
  return {&op::amax(), amax_reference(), op::to_params(p)};
}

double amax_of(const Numbers& x) {
  const Problem problem = problem_of({.rows = 1, .cols = static_cast<std::int64_t>(x.size())});
  return value_of(evaluate(problem, {{"x", x}}), "amax").at(0);
}

/// The scale for one element.
double scale_of(double x, op::AmaxParams p) {
  p.rows = p.cols = 1;
  return value_of(evaluate(problem_of(p), {{"x", {x}}}), "scale").at(0);
}

double quotient(float largest, float amax) {
  return static_cast<double>(largest / amax);
}

TEST(AmaxReference, the_largest_magnitude_counts) {
  EXPECT_EQ(amax_of({1, -3, 2}), 3);
  EXPECT_EQ(amax_of({-0.0, 0}), 0);
  EXPECT_FALSE(std::signbit(amax_of({-0.0})));
  EXPECT_EQ(amax_of({0, -0x1p-149}), 0x1p-149);
  EXPECT_EQ(amax_of({}), 0);
}

TEST(AmaxReference, infinity_counts_and_nan_is_dropped_wherever_it_is) {
  EXPECT_EQ(amax_of({kNan, 2, -1}), 2);
  EXPECT_EQ(amax_of({2, -1, kNan}), 2);
  EXPECT_EQ(amax_of({kNan, kNan}), 0);
  EXPECT_EQ(amax_of({1, -kInfinity, kNan}), kInfinity);
}

TEST(AmaxReference, the_scale_is_a_quotient_in_fp32) {
  EXPECT_EQ(scale_of(-7, {.format = "fp8_e4m3"}), 64);
  EXPECT_EQ(scale_of(3, {.format = "fp8_e4m3"}), quotient(448, 3));
  EXPECT_EQ(scale_of(3, {.format = "fp8_e5m2"}), quotient(57344, 3));
}

TEST(AmaxReference, an_amax_without_a_quotient_has_the_scale_1) {
  for (const double x : {0.0, kInfinity, kNan}) {
    EXPECT_EQ(scale_of(x, {.format = "fp8_e4m3"}), 1) << x;
    EXPECT_EQ(scale_of(x, {.format = "fp8_e4m3", .power_of_two = true}), 1) << x;
  }
}

TEST(AmaxReference, a_quotient_that_overflows_is_the_largest_number) {
  EXPECT_EQ(scale_of(0x1p-149, {.format = "fp8_e4m3"}), kMost);
  EXPECT_EQ(scale_of(0x1p-149, {.format = "fp8_e4m3", .power_of_two = true}), 0x1p127);
}

TEST(AmaxReference, epsilon_is_the_least_amax) {
  EXPECT_EQ(scale_of(0.5, {.format = "fp8_e4m3", .epsilon = 2}), 224);
  EXPECT_EQ(scale_of(4, {.format = "fp8_e4m3", .epsilon = 2}), 112);
  EXPECT_EQ(scale_of(0, {.format = "fp8_e4m3", .epsilon = 2}), 224);
  EXPECT_EQ(scale_of(kInfinity, {.format = "fp8_e4m3", .epsilon = 2}), 1);
}

TEST(AmaxReference, powers_of_two_are_rounded_down) {
  EXPECT_EQ(scale_of(3, {.format = "fp8_e4m3", .power_of_two = true}), 128);
  EXPECT_EQ(scale_of(3.5, {.format = "fp8_e4m3", .power_of_two = true}), 128);
  EXPECT_EQ(scale_of(std::nextafter(3.5F, 4.0F), {.format = "fp8_e4m3", .power_of_two = true}), 64);
  EXPECT_EQ(scale_of(kMost, {.format = "fp8_e4m3", .power_of_two = true}), 0x1p-120);
}

TEST(AmaxReference, outputs_are_defined_bit_for_bit) {
  const op::Values values = evaluate(problem_of({.rows = 1, .cols = 2, .format = "fp8_e5m2"}), {{"x", {1, 2}}});
  ASSERT_EQ(values.outputs.size(), 2);
  for (const op::OutputValues& output : values.outputs) {
    EXPECT_TRUE(output.bit_exact) << output.port;
  }
}

TEST(AmaxParams, what_concerns_the_scale_needs_a_format) {
  const auto mistakes = [](const op::AmaxParams& p) {
    return op::amax().check(op::to_params(p), *op::find_mode("fp32"));
  };
  EXPECT_TRUE(mistakes({.rows = 2, .cols = 2}).empty());
  EXPECT_TRUE(mistakes({.rows = 2, .cols = 2, .format = "fp8_e4m3", .epsilon = 1, .power_of_two = true}).empty());
  EXPECT_EQ(mistakes({.rows = 2, .cols = 2, .epsilon = 1, .power_of_two = true}).size(), 2);
  EXPECT_EQ(mistakes({.rows = 2, .cols = 2, .format = "fp8_e4m3", .epsilon = 1e-60}).size(), 1);
}

}  // namespace
}  // namespace numcheck::reference
