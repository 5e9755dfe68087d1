// Results that are put down to subnormal numbers taken for zero, and those that are not.
#include "reference/flushed_subnormals.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "norm_problem.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kSubnormal = 0x1p-130;

/// y = x gamma
template <class Scalar>
op::Values products(const op::ReferenceRequest& request) {
  op::Values values;
  const std::span<const double> x(request.inputs[0].data, request.inputs[0].elements());
  TrackedOutput y("y", x.size(), false);
  for (std::size_t i = 0; i < x.size(); ++i) {
    y.set(i, Scalar(x[i]) * Scalar(request.inputs[1].data[i]));
  }
  values.outputs.push_back(std::move(y).take());
  return values;
}

/// "numbers", "pattern", both or nothing, of x = 1, 2, two subnormal numbers and 3 times gamma.
std::string found(const std::vector<double>& gamma, const std::vector<double>& y,
                  core::Dtype stored = core::Dtype::fp32) {
  const std::vector<double> x = {1, 2, kSubnormal, -kSubnormal, 3};
  const std::vector<op::Operand> inputs = {{.port = "x", .data = x.data(), .rows = 1, .cols = 5},
                                           {.port = "gamma", .data = gamma.data(), .rows = 1, .cols = 5}};
  const op::Sample all;
  op::ReferenceRequest reference;
  reference.inputs = inputs;
  const op::Values expected = products<Tracked>(reference);
  const op::Delivered got{"y", y, stored};
  std::vector<op::Finding> findings;
  explain_flushes({.inputs = inputs, .expected = &expected, .outputs = {&got, 1}, .sample = &all}, &products<Tracked>,
                  &products<tolerance::Flushable>, nullptr, findings);
  std::string text;
  for (const op::Finding& finding : findings) {
    EXPECT_EQ(finding.cause, "subnormal numbers are taken for zero");
    text += finding.about == op::Finding::About::numbers ? "numbers " : "pattern ";
  }
  return text;
}

TEST(FlushedSubnormals, explain_zeros_of_inputs_and_results) {
  const std::vector<double> large = {1, 1, 0x1p120, 0x1p120, 1};
  EXPECT_EQ(found(large, {1, 2, 0, 0, 3}), "numbers ");
  EXPECT_EQ(found({1, 1, 1, 1, 0x1p-130}, {1, 2, 0, 0, 0}), "numbers ") << "results, too";
  EXPECT_EQ(found({1, 1, kInfinity, 1, 1}, {1, 2, kNan, 0, 3}), "numbers pattern ") << "0 times infinity";
}

TEST(FlushedSubnormals, explain_nothing_else) {
  const std::vector<double> large = {1, 1, 0x1p120, 0x1p120, 1};
  EXPECT_EQ(found(large, {1, 2, 0, 0, 3 + 0x1p-10}), "") << "a number that no flush touches";
  EXPECT_EQ(found(large, {1, 2, 0x1p-11, 0, 3}), "") << "half of what a flush takes, from an ordinary number";
  EXPECT_EQ(found(large, {1, 2, 0x1p-10, -0x1p-10, 3}), "") << "nothing is wrong";
  EXPECT_EQ(found(large, {1, 2, 0, 0, 0}), "") << "a third of what is wrong is a zero for a normal number";
  EXPECT_EQ(found(large, {1, 2, 1, 1, 3}), "") << "other numbers";
  EXPECT_EQ(found(large, {1, 2, kNan, 0, 3}), "numbers ") << "NaN without an infinity";
  EXPECT_EQ(found({1, 0x1p-127, 1, 1, 1}, {1, 0x1p-124, 0, 0, 3}), "") << "more than flushing costs";
  EXPECT_EQ(found({1, 1, 1, 1, 1}, {1 + 0x1p-7, 2, kSubnormal, -kSubnormal, 3}, core::Dtype::bf16), "")
      << "the neighbour of a normal number in BF16";
}

testing::Problem rmsnorm_of_one_row() {
  op::RmsnormBwdParams p;
  p.rows = 1;
  p.hidden = 2;
  return testing::problem_of(p);
}

/// What dx of one row of RMSNorm is put down to.
std::string cause_of_dx(const testing::Inputs& row, const std::vector<double>& dx) {
  const testing::Problem problem = rmsnorm_of_one_row();
  const op::Values values = testing::evaluate(problem, row);
  const op::Sample all;
  std::vector<op::Delivered> delivered;
  for (const op::OutputValues& output : values.outputs) {
    delivered.push_back(
        {.port = output.port, .value = output.port == "dx" ? std::span<const double>(dx) : output.value.span()});
  }
  const std::vector<op::Finding> findings =
      problem.reference.diagnose({&problem.params, testing::operands_of(problem, row), &values, delivered, &all});
  return findings.empty() ? "" : findings.front().cause;
}

// x sum(x dz gamma) overflows, and rsigma^3 = 0 makes NaN of that.
TEST(FlushedSubnormals, nan_of_rows_whose_rsigma_is_flushed_when_cubed_is_named) {
  const double expected =
      evaluate(rmsnorm_of_one_row(), {{"x", {0x1p120, 1}}, {"rsigma", {0x1p-120}}, {"dz", {1, 1}}, {"gamma", {1, 1}}})
          .outputs[0]
          .value[1];
  EXPECT_EQ(
      cause_of_dx({{"x", {0x1p120, 1}}, {"rsigma", {0x1p-120}}, {"dz", {1, 1}}, {"gamma", {1, 1}}}, {kNan, expected}),
      "subnormal numbers are taken for zero");
  EXPECT_EQ(
      cause_of_dx({{"x", {0x1p60, 1}}, {"rsigma", {0x1p-60}}, {"dz", {1, 1}}, {"gamma", {1, 1}}}, {kNan, 0x1p-60}), "")
      << "nothing overflows";
}

// The same row without an overflow that a library avoids: what is along x is 0, and nothing else is.
TEST(FlushedSubnormals, rows_that_may_become_nan_lose_what_is_along_x_only) {
  const testing::Inputs row = {{"x", {0x1p120, 1}}, {"rsigma", {0x1p-120}}, {"dz", {1, 1}}, {"gamma", {1, 1}}};
  const double expected = evaluate(rmsnorm_of_one_row(), row).outputs[0].value[1];
  EXPECT_EQ(cause_of_dx(row, {0x1p-120, expected}), "subnormal numbers are taken for zero");
  EXPECT_EQ(cause_of_dx(row, {7, expected}), "");
  EXPECT_EQ(cause_of_dx(row, {0x1p-118, expected}), "") << "more than is along x";
}

// mean(x dz gamma) rsigma^3, which cuDNN 9.14 forms, is below FP32's normal numbers, and neither of its factors is.
TEST(FlushedSubnormals, components_along_a_row_that_are_lost_are_named) {
  const auto cause_of_lost = [](double dz) {
    return cause_of_dx({{"x", {0x1p40, 1}}, {"rsigma", {0x1p-40}}, {"dz", {dz, 0}}, {"gamma", {1, 1}}},
                       {dz * 0x1p-40, 0});
  };
  EXPECT_EQ(cause_of_lost(0x1p-50), "subnormal numbers are taken for zero");
  EXPECT_EQ(cause_of_lost(0x1p-40), "") << "2^-121 is a normal number";
}

// A row of two leaves nothing but epsilon's part of what dz times gamma brings, which a flushed dz of 2^-126 changes by less than it
// might if nothing cancelled.
TEST(FlushedSubnormals, what_cancels_in_a_row_is_named) {
  const auto cause_of_first = [](double dx) {
    const testing::Problem problem = testing::problem_of(testing::rows_of<op::LayernormBwdParams>(1, 2, 1e-3));
    const testing::Inputs row = {{"x", {0.7100084, -0.02989125}},
                                 {"mu", {0.34005857}},
                                 {"rsigma", {2.693248}},
                                 {"dz", {5.9126507e-02, -7.7890545e-39}},
                                 {"gamma", {-1.1678749, -3.4028235e38}}};
    const op::Values values = testing::evaluate(problem, row);
    EXPECT_NEAR(values.outputs[0].value[0], -0.02656, 1e-5);
    const std::vector<double> stored = {dx, -dx};
    const op::Delivered delivered{.port = "dx", .value = stored};
    const op::Sample all;
    const std::vector<op::Finding> findings = problem.reference.diagnose(
        {&problem.params, testing::operands_of(problem, row), &values, {&delivered, 1}, &all});
    return findings.empty() ? "" : findings.front().cause;
  };
  EXPECT_EQ(cause_of_first(-0.00067448), "subnormal numbers are taken for zero") << "as cuDNN leaves it";
  EXPECT_EQ(cause_of_first(-0.0007), "");
}

// Two of the smallest numbers: what is lost of their mean is no more than they are, and so is 1.5e-5 beside beta.
TEST(FlushedSubnormals, tiny_numbers_that_a_huge_gamma_shows_are_named) {
  const auto cause_of_y = [](double y) {
    const testing::Problem problem = testing::problem_of(testing::rows_of<op::LayernormFwdParams>(1, 2, 1e-3));
    const testing::Inputs row = {{"x", {0x1p-149, -0x1p-149}}, {"gamma", {1, 0x1.fffffep127}}, {"beta", {0, 0.875}}};
    const op::Values values = testing::evaluate(problem, row);
    EXPECT_NEAR(values.outputs[0].value[1], 0.875 - 1.5e-5, 1e-6);
    const std::vector<double> stored = {0, y};
    const op::Delivered delivered{.port = "y", .value = stored};
    const op::Sample all;
    const std::vector<op::Finding> findings = problem.reference.diagnose(
        {&problem.params, testing::operands_of(problem, row), &values, {&delivered, 1}, &all});
    return findings.empty() ? "" : findings.front().cause;
  };
  EXPECT_EQ(cause_of_y(0.875), "subnormal numbers are taken for zero");
  EXPECT_EQ(cause_of_y(0.876), "") << "more than they are";
}

/// What an output of that problem is put down to; the others are as they should be.
std::string cause_of(const testing::Problem& problem, const testing::Inputs& inputs, const op::Delivered& output) {
  const op::Values values = testing::evaluate(problem, inputs);
  const op::Sample all;
  const std::vector<op::Finding> findings =
      problem.reference.diagnose({&problem.params, testing::operands_of(problem, inputs), &values, {&output, 1}, &all});
  return findings.empty() ? "" : findings.front().cause;
}

// cuDNN multiplies x by rsigma first, so that the first term of dgamma is lost: 2^-130 is subnormal. The second one would be where
// dz is, and the third one nowhere.
TEST(FlushedSubnormals, lose_what_one_order_of_multiplications_does) {
  const testing::Problem problem = testing::problem_of(testing::rows_of<op::RmsnormBwdParams>(3, 1, 1e-3));
  const testing::Inputs inputs = {{"x", {0x1p-10, 0x1p125, 0x1p20}},
                                  {"rsigma", {0x1p-120, 0x1p-120, 0x1p-20}},
                                  {"dz", {0x1p125, 0x1p-10, 3}},
                                  {"gamma", {1}}};
  const auto cause_of_dgamma = [&](double dgamma) {
    const std::vector<double> stored = {dgamma};
    return cause_of(problem, inputs, {.port = "dgamma", .value = stored});
  };
  EXPECT_EQ(cause_of_dgamma(3 + 0x1p-5), "subnormal numbers are taken for zero");
  EXPECT_EQ(cause_of_dgamma(3), "") << "no order loses both";
  EXPECT_EQ(cause_of_dgamma(3 + 0x1p-4 - 0x1p-6), "");
}

// rsigma^2 is flushed, and with it what is along x, which is nearly all of the second element.
TEST(FlushedSubnormals, lose_what_is_along_a_row_or_not) {
  const testing::Problem problem = testing::problem_of(testing::rows_of<op::RmsnormBwdParams>(1, 2, 1e-3));
  const testing::Inputs inputs = {
      {"x", {0x1p70, 0x1p70}}, {"rsigma", {0x1p-70}}, {"dz", {0x1p71, 3}}, {"gamma", {1, 1}}};
  const auto cause_of_dx = [&](double second) {
    const std::vector<double> stored = {2, second};
    return cause_of(problem, inputs, {.port = "dx", .value = stored});
  };
  EXPECT_NEAR(testing::evaluate(problem, inputs).outputs[0].value[1], -1, 1e-9);
  EXPECT_EQ(cause_of_dx(3 * 0x1p-70), "subnormal numbers are taken for zero");
  EXPECT_EQ(cause_of_dx(-0.5), "") << "half of it";
}

// Half of rsigma^3 dz (x - mu), which cuDNN forms, is 1.5 x 2^-127, and what is along x the whole of dz but for epsilon's part.
TEST(FlushedSubnormals, lose_half_of_the_cube_of_rsigma_within_a_mean) {
  const testing::Problem problem = testing::problem_of(testing::rows_of<op::RmsnormBwdParams>(1, 1, 1e-3));
  const auto cause_of_dx = [&](double dz, double dx) {
    const testing::Inputs inputs = {{"x", {0x1p35}}, {"rsigma", {0x1.fffffep-36}}, {"dz", {dz}}, {"gamma", {1}}};
    const std::vector<double> stored = {dx};
    return cause_of(problem, inputs, {.port = "dx", .value = stored});
  };
  EXPECT_EQ(cause_of_dx(0x1.8p-56, 0x1.8p-91), "subnormal numbers are taken for zero");
  EXPECT_EQ(cause_of_dx(0x1.8p-56, 0x1.8p-92), "");
  EXPECT_EQ(cause_of_dx(0x1p-53, 0x1p-88), "") << "2^-124 is a normal number";
}

// dz rsigma is small enough that partial sums of it may be subnormal, in an order that is not known: the mean is off, and with it
// the whole row.
TEST(FlushedSubnormals, lose_one_number_of_a_mean_for_the_whole_row) {
  const testing::Problem problem = testing::problem_of(testing::rows_of<op::LayernormBwdParams>(1, 4, 1e-3));
  const testing::Inputs inputs = {{"x", {0x1p115, -0x1p115, 0x1p115, -0x1p115}},
                                  {"mu", {0}},
                                  {"rsigma", {0x1p-113}},
                                  {"dz", {1, 1, 3, 3}},
                                  {"gamma", {1, 1, 1, 1}}};
  const auto cause_of_dx = [&](const std::vector<double>& in_rsigma) {
    std::vector<double> stored = in_rsigma;
    std::ranges::for_each(stored, [](double& dx) { dx *= 0x1p-113; });
    return cause_of(problem, inputs, {.port = "dx", .value = stored});
  };
  const double off = 0x1p-15;
  EXPECT_EQ(cause_of_dx({-1 + off, -1 + off, 1 + off, 1 + off}), "subnormal numbers are taken for zero");
  EXPECT_EQ(cause_of_dx({-1 - off, -1 - off, 1 + off, 1 + off}), "") << "another factor";
  EXPECT_EQ(cause_of_dx({-1 + off, -1 - off, 1 - off, 1 + off}), "");
  EXPECT_EQ(cause_of_dx({-1 + 0.25, -1 + 0.25, 1 + 0.25, 1 + 0.25}), "") << "more than subnormal sums are";
}

// Another rounding or an overflow in another order has nothing to do with flushes.
TEST(FlushedSubnormals, explain_no_other_order_of_multiplications) {
  op::RmsnormFwdParams rounded = testing::rows_of<op::RmsnormFwdParams>(1, 3, 1e-3);
  rounded.gamma_order = "hf";
  const testing::Inputs ordinary = {{"x", {1, 1.7, -0.3}}, {"gamma", {1.1, 0.9, 1.3}}};
  const testing::Problem te = testing::problem_of(testing::rows_of<op::RmsnormFwdParams>(1, 3, 1e-3), "bf16");
  const op::Values values = testing::evaluate(te, ordinary);
  EXPECT_EQ(cause_of(testing::problem_of(rounded, "bf16"), ordinary,
                     {"y", values.outputs[0].value.span(), core::Dtype::bf16}),
            "");

  const testing::Problem problem = testing::problem_of(testing::rows_of<op::RmsnormFwdParams>(1, 2, 1e-3));
  const testing::Inputs large = {{"x", {0x1p60, 0x1p60}}, {"gamma", {0x1p80, 0x1p80}}};
  EXPECT_EQ(cause_of(problem, large, {.port = "y", .value = std::vector<double>{kInfinity, kInfinity}}), "");
  EXPECT_EQ(cause_of(problem, large, {.port = "y", .value = std::vector<double>{kNan, 0x1p80}}), "");
}

// Equal numbers are rounded alike: they say nothing of what else is wrong.
TEST(FlushedSubnormals, leave_equal_numbers_that_are_rounded_alike) {
  constexpr std::size_t kRows = 300;
  const testing::Problem problem =
      testing::problem_of(testing::rows_of<op::RmsnormFwdParams>(static_cast<std::int64_t>(kRows), 2, 1e-3));
  testing::Inputs inputs = {{"x", std::vector<double>(2 * kRows)}, {"gamma", {1 + 0x1p-9, 0x1p120}}};
  std::vector<double>& x = inputs["x"];
  for (std::size_t i = 0; i < kRows; ++i) {
    x[2 * i] = 0x1p40;
    x[2 * i + 1] = i == 7 ? 0x1p-90 : 0;
  }
  const op::Values values = testing::evaluate(problem, inputs);
  std::vector<double> y(2 * kRows);
  for (std::size_t at = 0; at < y.size(); ++at) {
    y[at] = at == 15 ? 0 : core::round_to(values.outputs[0].value[at], core::Dtype::bf16);
  }
  const auto cause_of_y = [&] { return cause_of(problem, inputs, {"y", y, core::Dtype::bf16}); };
  EXPECT_EQ(cause_of_y(), "subnormal numbers are taken for zero");
  for (std::size_t i = 0; i < kRows; ++i) {
    y[2 * i] += y[2 * i] < 1.4142 ? -0x1p-7 : 0x1p-7;
  }
  EXPECT_EQ(cause_of_y(), "") << "the next numbers";
}

}  // namespace
}  // namespace numcheck::reference
