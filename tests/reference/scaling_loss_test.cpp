// What scales lose that are not the implied ones, and what the findings of a series say about it.
#include "reference/scaling_loss.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include <gtest/gtest.h>

#include "op/fp8_recipe.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::operands_of;
using testing::Problem;

constexpr core::Dtype kE4m3 = core::Dtype::fp8_e4m3, kE5m2 = core::Dtype::fp8_e5m2;

/// Relative error, of which the published tables give 2.65e-2 for E4M3 and 5.26e-2 for E5M2.
double relative_error(const ScalingLoss& loss) {
  return std::pow(10, -loss.sqnr_db / 20);
}

TEST(ScalingLoss, data_that_fill_the_format_lose_what_rounding_loses) {
  const ScalingLoss e4m3 = scaling_loss(448, kE4m3), e5m2 = scaling_loss(57344, kE5m2);
  EXPECT_NEAR(relative_error(e4m3), 2.65e-2, 0.05e-2);
  EXPECT_NEAR(relative_error(e5m2), 5.26e-2, 0.1e-2);
  EXPECT_EQ(e4m3.clipped, 0);
  EXPECT_EQ(e5m2.clipped, 0);
}

TEST(ScalingLoss, large_data_are_clipped_and_small_ones_become_0) {
  const ScalingLoss large = scaling_loss(448 * 16, kE4m3);
  EXPECT_GT(large.clipped, 0.5);
  EXPECT_LT(large.sqnr_db, 5);
  const ScalingLoss small = scaling_loss(0x1p-8, kE4m3);
  EXPECT_GT(small.underflow, 0.3) << "numbers up to 2^-10 are stored as 0";
  EXPECT_LT(small.sqnr_db, 10);
  EXPECT_EQ(scaling_loss(0x1p-30, kE4m3).underflow, 1);
  EXPECT_EQ(scaling_loss(0x1p-30, kE4m3).sqnr_db, 0);
}

TEST(ScalingLoss, what_is_rounded_to_the_largest_number_is_not_clipped) {
  EXPECT_EQ(scaling_loss(464, kE4m3).clipped, 0);
  EXPECT_GT(scaling_loss(464.5, kE4m3).clipped, 0);
  EXPECT_EQ(scaling_loss(61440, kE5m2).clipped, 0);
  EXPECT_GT(scaling_loss(61441, kE5m2).clipped, 0);
}

TEST(ScalingLoss, the_range_of_good_scales_ends_where_3_db_are_lost) {
  for (const core::Dtype format : {kE4m3, kE5m2}) {
    const double full = core::dtype_info(format).max_finite, least = scaling_loss(full, format).sqnr_db - 3;
    const ScalingRange range = good_scaling(format);
    EXPECT_NEAR(scaling_loss(range.smallest, format).sqnr_db, least, 0.01);
    EXPECT_NEAR(scaling_loss(range.largest, format).sqnr_db, least, 0.01);
    EXPECT_LT(range.largest, 2 * full);
  }
  EXPECT_LT(good_scaling(kE5m2).smallest, good_scaling(kE4m3).smallest) << "it has more small numbers";
}

std::vector<op::Finding> findings_of(const std::vector<double>& amaxes, const std::vector<double>& scales) {
  const Problem problem = {
      &op::fp8_recipe(), fp8_recipe_reference(),
      op::to_params(op::Fp8RecipeParams{.steps = static_cast<std::int64_t>(amaxes.size() / 2), .tensors = 2})};
  const testing::Inputs inputs = {{"amaxes", amaxes}};
  op::Delivered delivered;
  delivered.port = "scales";
  delivered.value = scales;
  return problem.reference.findings({&problem.params, operands_of(problem, inputs), nullptr, {&delivered, 1}, nullptr});
}

TEST(ScalingFindings, name_the_worst_steps) {
  const std::vector<op::Finding> findings = findings_of({7, 0, 14, 1}, {64, 1, 64, 0.5});
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].name, "largest scaled amax");
  EXPECT_EQ(findings[0].port, "scales");
  EXPECT_EQ(findings[0].measured, 2);
  EXPECT_NE(findings[0].text.find("step 1, tensor 0: scale 64 is used where an amax of 14 implies 32;"),
            std::string::npos);
  EXPECT_EQ(findings[1].name, "smallest scaled amax");
  EXPECT_EQ(findings[1].measured, 0.5 / 448);
  EXPECT_NE(findings[1].text.find("step 1, tensor 1: scale 0.5 "), std::string::npos);
  EXPECT_EQ(findings[2].measured, 1.0 / 3) << "14 times 64; 0.5 loses little, and one tensor has no data in step 0";
  EXPECT_EQ(findings[2].text, "1 of 3 steps of tensors, from step 1 to step 1");
}

double in_series(const op::Series& series, std::string_view name, std::size_t row) {
  return std::ranges::find(series, name, &op::SeriesColumn::name)->values.at(row);
}

TEST(ScalingFindings, have_a_row_for_each_step) {
  const op::Series series = findings_of({7, 0, 14, 1, 0, NAN, 2, 1}, {64, 1, 64, 0.5, 1, 1, 200, 1e-6}).back().series;
  ASSERT_EQ(series.size(), 8U);
  for (const op::SeriesColumn& column : series) {
    ASSERT_EQ(column.values.size(), 4U) << column.name;
  }
  EXPECT_EQ(in_series(series, "tensor", 0), 0);
  EXPECT_EQ(in_series(series, "scale_used", 0), 64);
  EXPECT_EQ(in_series(series, "scale_implied", 0), 64);
  EXPECT_EQ(in_series(series, "clipped", 0), 0);
  EXPECT_EQ(in_series(series, "step", 1), 1);
  EXPECT_EQ(in_series(series, "tensor", 1), 0) << "clipping loses more than half a scale";
  EXPECT_EQ(in_series(series, "scale_implied", 1), 32);
  EXPECT_EQ(in_series(series, "clipped", 1), scaling_loss(896, kE4m3).clipped);
  EXPECT_EQ(in_series(series, "sqnr_db", 1), scaling_loss(896, kE4m3).sqnr_db);
  EXPECT_EQ(in_series(series, "dead_tensors", 1), 0);
  EXPECT_EQ(in_series(series, "step", 2), 2);
  EXPECT_TRUE(std::isnan(in_series(series, "scale_used", 2))) << "no tensor has data";
  EXPECT_EQ(in_series(series, "tensor", 3), 1);
  EXPECT_EQ(in_series(series, "underflow", 3), 1);
  EXPECT_EQ(in_series(series, "dead_tensors", 3), 1);
}

TEST(ScalingFindings, of_many_steps_the_first_and_the_last_are_in_the_series) {
  const std::size_t steps = 5 * kMostSeriesRows + 3;
  const op::Series series =
      findings_of(std::vector<double>(2 * steps, 7), std::vector<double>(2 * steps, 64)).back().series;
  ASSERT_EQ(series.front().values.size(), kMostSeriesRows);
  EXPECT_EQ(series.front().values.front(), 0);
  EXPECT_EQ(series.front().values.back(), static_cast<double>(steps - 1));
  EXPECT_TRUE(std::ranges::is_sorted(series.front().values, std::ranges::less_equal()));
}

TEST(ScalingFindings, steps_without_data_say_nothing) {
  EXPECT_TRUE(findings_of({0, INFINITY, NAN, 0}, {1, 1, 1, 1}).empty());
  EXPECT_TRUE(findings_of({1, 1}, {NAN, INFINITY}).empty());
}

}  // namespace
}  // namespace numcheck::reference
