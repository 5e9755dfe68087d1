// What a norm's statistics are put down to: rows with infinities, and nothing else.
#include "reference/norm_diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "norm_problem.hpp"

namespace numcheck::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

/// Of three rows; the first has an infinity, the second a NaN.
std::string cause_of(const std::vector<double>& rsigma, const std::vector<double>& x = {1, -kInfinity, kNan, 2, 3, 4}) {
  op::Values expected;
  op::OutputValues& output = expected.outputs.emplace_back();
  output.port = "rsigma";
  output.value = core::Buffer<double>(3);
  std::ranges::copy(std::vector<double>{kNan, kNan, 2}, output.value.span().begin());
  const std::vector<op::Operand> inputs = {
      {.port = "x", .data = x.data(), .rows = 3, .cols = static_cast<std::int64_t>(x.size() / 3)}};
  const op::Delivered got{"rsigma", rsigma};
  op::FindingRequest request;
  const op::Params params = op::to_params(op::LayernormFwdParams());
  request.params = &params;
  request.inputs = inputs;
  request.expected = &expected;
  request.outputs = {&got, 1};
  const auto findings = diagnose_layernorm(request);
  return findings.empty() ? "" : findings.front().cause;
}

TEST(NormDiagnosis, names_rows_with_infinities_whose_reciprocal_deviation_is_0) {
  EXPECT_EQ(cause_of({0, kNan, 2}), "rows with infinities have a reciprocal deviation of 0");
}

TEST(NormDiagnosis, names_rows_of_one_element_that_have_no_deviation) {
  const double of_zero = 1 / std::sqrt(static_cast<double>(1e-5F));
  EXPECT_EQ(cause_of({of_zero, of_zero, 2}, {kInfinity, kNan, 1}),
            "rows of one element have no deviation, even of infinities and NaN");
  EXPECT_EQ(cause_of({1, 1, 2}, {kInfinity, kNan, 1}), "");
  EXPECT_EQ(cause_of({of_zero, of_zero, 2}), "") << "rows of two elements";
}

TEST(NormDiagnosis, names_nothing_else) {
  EXPECT_EQ(cause_of({kNan, kNan, 2}), "") << "nothing is wrong";
  EXPECT_EQ(cause_of({kNan, 0, 2}), "") << "a row with NaN";
  EXPECT_EQ(cause_of({1, kNan, 2}), "") << "not 0";
  EXPECT_EQ(cause_of({0, 0, 2}), "") << "only half of what is wrong";
  EXPECT_EQ(cause_of({0, kNan, kNan}), "") << "a row of finite numbers";
  EXPECT_EQ(cause_of({0, kNan, kInfinity}), "") << "the same";
}

/// Of RMSNorm's y and rsigma where the first of two rows has infinities.
std::vector<std::string> causes_of(const std::vector<double>& y, const std::vector<double>& rsigma) {
  const testing::Problem problem = testing::problem_of(testing::rows_of<op::RmsnormFwdParams>(2, 2));
  const testing::Inputs inputs = {{"x", {kInfinity, 2, 1, 1}}, {"gamma", {1, 1}}};
  const op::Values expected = testing::evaluate(problem, inputs);
  const std::vector<op::Delivered> got = {{"y", y}, {"rsigma", rsigma}};
  std::vector<std::string> causes;
  for (const op::Finding& finding :
       diagnose_rmsnorm({&problem.params, testing::operands_of(problem, inputs), &expected, got, nullptr})) {
    causes.push_back(finding.port + ": " + finding.cause);
  }
  return causes;
}

TEST(NormDiagnosis, names_rows_with_infinities_that_are_nan_as_a_whole) {
  const std::string cause = "rows with infinities are NaN as a whole";
  EXPECT_EQ(causes_of({kNan, kNan, 1, 1}, {kNan, 1}), (std::vector<std::string>{"y: " + cause, "rsigma: " + cause}));
  EXPECT_TRUE(causes_of({kNan, 0, 1, 1}, {0, 1}).empty()) << "nothing is wrong";
  EXPECT_TRUE(causes_of({kNan, kNan, kNan, kNan}, {0, 1}).empty()) << "another row is, too";
  EXPECT_TRUE(causes_of({kNan, 1, 1, 1}, {0, 1}).empty()) << "a wrong number";
}

/// Of dx of two rows of two elements, whose saved rsigma are given.
std::size_t cubes_of(const std::vector<double>& dx, const std::vector<double>& rsigma) {
  const testing::Problem problem = testing::problem_of(testing::rows_of<op::LayernormBwdParams>(2, 2));
  const testing::Inputs inputs = {
      {"x", {1, 1, 1, 3}}, {"dz", {1, 2, 1, 2}}, {"gamma", {1, 1}}, {"mu", {1, 2}}, {"rsigma", rsigma}};
  const op::Values expected = testing::evaluate(problem, inputs);
  const op::Delivered got{"dx", dx};
  std::vector<op::Finding> findings;
  explain_cubes({&problem.params, testing::operands_of(problem, inputs), &expected, {&got, 1}, nullptr}, findings);
  return findings.size();
}

TEST(NormDiagnosis, names_rows_whose_cubed_rsigma_overflows) {
  EXPECT_EQ(cubes_of({kNan, kNan, 0, 0}, {1e13, 1}), 1U);
  EXPECT_EQ(cubes_of({kNan, kInfinity, 0, 0}, {1e13, 1}), 1U);
  EXPECT_EQ(cubes_of({kNan, kNan, 0, 0}, {1e12, 1}), 0U) << "1e36 is finite";
  EXPECT_EQ(cubes_of({0, 0, kNan, kNan}, {1e13, 1}), 0U) << "another row";
  EXPECT_EQ(cubes_of({0, 0, 0, 0}, {1e13, 1}), 0U) << "nothing is wrong";
}

TEST(NormFwd, rsigma_of_infinities_is_exactly_0) {
  const testing::Problem problem = testing::problem_of(testing::rows_of<op::RmsnormFwdParams>(1, 2));
  const op::Values values = testing::evaluate(problem, {{"x", {-kInfinity, 2}}, {"gamma", {1, 1}}});
  const op::OutputValues& rsigma = testing::output_named(values, "rsigma");
  EXPECT_EQ(rsigma.value[0], 0);
  EXPECT_EQ(rsigma.magnitude[0], 0) << "an error of NaN would leave it unjudged";
}

}  // namespace
}  // namespace numcheck::reference
