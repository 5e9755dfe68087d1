// What the operands of an element's row and column excuse.
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "problem.hpp"

namespace numcheck::metric {
namespace {

using core::Dtype;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(OperandLines, that_become_infinite_excuse_their_rows_and_columns_only) {
  Problem p = quiet(Dtype::fp32);
  p.model.operand_limit = 3e38;
  p.model.overflow_possible = true;
  p.model.reach = 1e-38;
  std::vector<Line> rows(5, {1, 1}), columns(13, {2, 1});
  p.expected[20] = 5;  // row 1, column 7
  p.set_got(20, kNan);
  CompareInput input = p.input();
  input.row_lines = rows;
  input.column_lines = columns;
  EXPECT_EQ(compare(input).nonfinite_mismatch, 1U);
  rows[2].largest = columns[6].largest = 3.2e38;
  EXPECT_EQ(compare(input).nonfinite_mismatch, 1U) << "neighbours";
  p.model.overflow_may_be_finite = true;
  p.set_got(20, 0);
  EXPECT_EQ(compare(input).order_dependent, 0U);
  columns[7].largest = 3.2e38;
  EXPECT_EQ(compare(input).order_dependent, 1U) << "relu(NaN)";
  p.set_got(20, kNan);
  EXPECT_EQ(compare(input).order_dependent, 1U);
}

TEST(OperandLines, infinities_become_nan_only_if_finite_terms_can_overflow) {
  Problem p = quiet(Dtype::fp32);
  p.model.overflow_possible = true;
  p.model.reach = 1e-38;
  p.model.operand_least = 1e-38;
  std::vector<Line> rows(5, {1e18, 1}), columns(13, {1e18, 1});
  p.expected[20] = kInf;
  p.set_got(20, kNan);
  CompareInput input = p.input();
  input.row_lines = rows;
  input.column_lines = columns;
  EXPECT_EQ(compare(input).nonfinite_mismatch, 1U);
  columns[7].largest = 1e21;
  EXPECT_EQ(compare(input).order_dependent, 1U) << "1e39 exceeds FP32";
  columns[7] = {1e18, 1e-40};
  EXPECT_EQ(compare(input).order_dependent, 1U) << "1e-40 may become 0, and infinity times 0 is NaN";
}

// alpha = 0: some kernels multiply the product all the same, and 0 times infinity is NaN.
TEST(OperandLines, that_are_not_finite_may_make_nan_of_a_product_with_zero) {
  for (const double expected : {5.0, kInf}) {
    Problem p = quiet(Dtype::fp32);
    p.model.zero_times_product = p.model.overflow_possible = true;
    p.model.reach = 1e-38;
    std::vector<Line> rows(5, {1e18, 1}), columns(13, {1e18, 1});
    p.expected[20] = expected;  // row 1, column 7
    p.set_got(20, kNan);
    CompareInput input = p.input();
    EXPECT_EQ(compare(input).nonfinite_mismatch, expected == kInf ? 0U : 1U) << "nothing is known of the operands";
    input.row_lines = rows;
    input.column_lines = columns;
    EXPECT_EQ(compare(input).nonfinite_mismatch, 1U) << expected;
    rows[2].finite = columns[6].finite = false;
    EXPECT_EQ(compare(input).nonfinite_mismatch, 1U) << "neighbours";
    rows[1].finite = false;
    EXPECT_EQ(compare(input).order_dependent, 1U) << expected;
    rows[1].finite = true;
    columns[7].largest = 1e21;
    EXPECT_EQ(compare(input).order_dependent, 1U) << "1e39 exceeds FP32";
    p.set_got(20, -kInf);
    EXPECT_EQ(compare(input).nonfinite_mismatch, 1U) << "0 times infinity is no infinity";
  }
}

}  // namespace
}  // namespace numcheck::metric
