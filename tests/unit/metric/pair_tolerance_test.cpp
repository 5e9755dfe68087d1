#include "metric/pair_tolerance.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "core/dtype.hpp"
#include "metric/wrong_elements.hpp"
#include "problem.hpp"

namespace numcheck::metric {
namespace {

/// The largest error of an element, upwards, with which it is not marked as wrong, within a thousandth.
double largest_right_error(Problem problem, std::int64_t index) {
  const double y = problem.expected[static_cast<std::size_t>(index)];
  double right = 0, wrong = 1 + std::abs(y);
  while (wrong - right > 1e-3 * wrong) {
    const double middle = (right + wrong) / 2;
    problem.set_got(index, y + middle);
    (mark_wrong(problem.input(), std::nullopt)[static_cast<std::size_t>(index)] != 0 ? wrong : right) = middle;
  }
  return right;
}

TEST(PairTolerance, rtol_is_one_ulp_of_a_power_of_two) {
  for (const core::Dtype dtype : {core::Dtype::fp32, core::Dtype::bf16, core::Dtype::fp16}) {
    const Problem problem = make_problem(dtype, {.rows = 8, .cols = 16}, 1e-6, 3);
    const auto found = pair_tolerance(problem.input());
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->rtol, std::ldexp(1.0, -core::dtype_info(dtype).fraction_bits));
  }
}

TEST(PairTolerance, two_right_results_keep_it_and_the_worst_ones_need_it) {
  const Problem problem = make_problem(core::Dtype::fp32, {.rows = 4, .cols = 8}, 1e-6, 5);
  const auto found = pair_tolerance(problem.input());
  ASSERT_TRUE(found.has_value());
  double closest = 0;
  for (std::int64_t i = 0; i < problem.port.elements(); ++i) {
    const double error = largest_right_error(problem, i);
    const double y = std::abs(problem.expected[static_cast<std::size_t>(i)]);
    const double allowed = found->atol + found->rtol * y;
    // One result is too large by that, and the other too small.
    EXPECT_LE(2 * error, allowed * 1.01) << "element " << i;
    closest = std::max(closest, 2 * error / allowed);
  }
  EXPECT_GT(closest, 0.9);
}

TEST(PairTolerance, elements_that_any_number_may_be_in_do_not_count) {
  Problem problem = make_problem(core::Dtype::fp32, {.rows = 4, .cols = 8}, 1e-6, 5);
  const auto usual = pair_tolerance(problem.input());
  problem.magnitude[9] = std::numeric_limits<float>::max();
  problem.deviation[9] = std::numeric_limits<float>::infinity();
  const auto found = pair_tolerance(problem.input());
  ASSERT_TRUE(usual.has_value() && found.has_value());
  EXPECT_LE(found->atol, usual->atol);
}

TEST(PairTolerance, an_exact_output_has_none) {
  Problem problem = make_problem(core::Dtype::fp32, {.rows = 4, .cols = 8}, 0, 7);
  problem.model.exact = true;
  EXPECT_FALSE(pair_tolerance(problem.input()).has_value());
}

}  // namespace
}  // namespace numcheck::metric
