// Tests gate G3 at its limit.
#include "judge_fixture.hpp"

namespace numcheck::tolerance {
namespace {

TEST(Judge, slope_is_one_sided) {
  metric::Statistics s = clean();
  model::ErrorModel m = bf16_model();
  m.slope_low = -1e-5;
  s.slope_se = 1e-7;
  s.slope = -1.5e-5 - 5e-7;
  EXPECT_TRUE(holds("G3 slope", s, m));
  s.slope -= 1e-9;
  EXPECT_FALSE(holds("G3 slope", s, m)) << "more than 1.5 predictions";
  s.slope = 0;
  EXPECT_TRUE(holds("G3 slope", s, m)) << "split-K shrinks the bias";
  s.slope = 4.9e-7;
  EXPECT_TRUE(holds("G3 slope", s, m));
  s.slope = 5.1e-7;
  EXPECT_FALSE(holds("G3 slope", s, m)) << "errors away from zero are not predicted";
}

TEST(Judge, slope_tolerance_has_floors) {
  metric::Statistics s = clean();
  s.slope_se = s.slope_predicted_se = 0;
  s.slope = 0x1p-26;
  EXPECT_TRUE(holds("G3 slope", s));
  s.slope = 0x1.01p-26;
  EXPECT_FALSE(holds("G3 slope", s));
  s.slope_predicted_se = 1e-8;
  EXPECT_TRUE(holds("G3 slope", s)) << "five predicted standard errors";
  s.slope_predicted_se = 0;
  model::ErrorModel m = bf16_model();
  m.slope_slack = 0x1p-26;
  EXPECT_TRUE(holds("G3 slope", s, m));
}

TEST(Judge, slope_error_is_the_scatter_of_many_rows) {
  metric::Statistics s = clean();
  model::ErrorModel m = fp32_model();
  s.signal = 1e8;  // independent errors of 1e6 elements: 1e-7
  s.slope_predicted_se = 1e-5;
  s.slope_se = 2e-7;
  s.slope = 4e-5;
  EXPECT_TRUE(holds("G3 slope", s, m)) << "all errors of a row may be the same";
  s.slope_clusters = 128;
  EXPECT_FALSE(holds("G3 slope", s, m)) << "128 rows show that they are not";
  s.slope = 1.05e-6;
  EXPECT_TRUE(holds("G3 slope", s, m)) << "Student's t of 127 degrees of freedom is 5.28 where a normal variable is 5";
  s.slope = 1.07e-6;
  EXPECT_FALSE(holds("G3 slope", s, m));
  s.spread_ulps = 10;
  s.slope = 4e-5;
  EXPECT_TRUE(holds("G3 slope", s, m)) << "errors may be those of few numbers, which rows and columns share";
  s.spread_ulps = 100;
  m.rows_agree = true;
  EXPECT_TRUE(holds("G3 slope", s, m)) << "all may share the error of a constant operand";
  m.rows_agree = false;
  s.slope_clusters = 8;
  s.slope = 3.5e-6;
  EXPECT_TRUE(holds("G3 slope", s, m)) << "17.6 for 7 degrees of freedom";
  s.slope_clusters = 128;
  s.slope_se = 0;
  s.slope = 4.9e-7;
  EXPECT_TRUE(holds("G3 slope", s, m)) << "five times what independent errors leave";
  s.slope = 5.1e-7;
  EXPECT_FALSE(holds("G3 slope", s, m));
}

TEST(Judge, sums_of_one_sign_may_have_one_error_in_all_rows) {
  metric::Statistics s = clean();
  model::ErrorModel m = fp32_model();
  m.kappa = 2;
  s.signal = 1e10;  // an error of 2 sqrt(V) in every element is 2e-5 of it
  s.slope_predicted_se = 1e-6;
  s.slope_clusters = 128;
  s.slope = 1.9e-5;
  EXPECT_FALSE(holds("G3 slope", s, m)) << "rows have errors of their own";
  m.sums_agree = true;
  EXPECT_TRUE(holds("G3 slope", s, m));
  s.slope = 2.1e-5;
  EXPECT_FALSE(holds("G3 slope", s, m)) << "gate G2 rms allows no more either";
  m.output = core::Dtype::bf16;
  s.slope = 1.9e-5;
  EXPECT_FALSE(holds("G3 slope", s, m)) << "of short outputs, flips tell";
}

TEST(Judge, scatter_may_show_what_columns_share) {
  metric::Statistics s = clean();
  model::ErrorModel m = bf16_model();
  m.columns_agree = true;
  m.element_errors = [](const op::Values&, std::span<float>, std::span<float>) {};
  s.spread_ulps = 10;
  s.slope_predicted_se = 1e-5;
  s.slope_se = s.slope_flip_se = 2e-7;
  s.slope_clusters = 128;
  s.slope = 4e-5;
  EXPECT_TRUE(holds("G3 slope", s, m)) << "all errors of a row may be the same";
  m.scatter_shows = true;
  EXPECT_FALSE(holds("G3 slope", s, m)) << "128 rows show that they are not";
  s.slope = 1.09e-6;
  EXPECT_TRUE(holds("G3 slope", s, m)) << "sqrt(2 * 15) = 5.48 times what flips leave";
  s.slope_se = 4e-7;
  s.slope = 2.1e-6;
  EXPECT_TRUE(holds("G3 slope", s, m)) << "5.28 times the scatter";
  s.slope = 2.2e-6;
  EXPECT_FALSE(holds("G3 slope", s, m));
  s.slope_flip_drift = 1e-7;
  EXPECT_TRUE(holds("G3 slope", s, m)) << "and which of its numbers y is near";
  s.slope = 4e-5;
  s.slope_clusters = 0;
  EXPECT_TRUE(holds("G3 slope", s, m)) << "no rows, no scatter";
}

TEST(Judge, coherent_data_may_have_a_larger_slope) {
  metric::Statistics s = clean();
  model::ErrorModel m = bf16_model();
  m.slope_coherent = -1e-4;
  s.slope = -1e-4;
  s.coherence = 0.01;
  EXPECT_FALSE(holds("G3 slope", s, m)) << "zero-mean products";
  s.coherence = 1;
  EXPECT_TRUE(holds("G3 slope", s, m)) << "products of one sign";
}

TEST(Judge, slope_is_not_judged_without_clusters_or_spread) {
  metric::Statistics s = clean();
  s.slope_se = kInf;
  EXPECT_FALSE(judged("G3 slope", s));
  s = clean();
  s.spread_ulps = 0.5;
  EXPECT_FALSE(judged("G3 slope", s)) << "rounding errors of the output do not average out";
  model::ErrorModel wide = bf16_model();
  wide.output = core::Dtype::fp32;
  EXPECT_TRUE(judged("G3 slope", s, wide));
  wide.slope_slack = kInf;
  EXPECT_FALSE(judged("G3 slope", s, wide));
}

TEST(Judge, slope_of_equal_results_is_that_of_equal_errors) {
  metric::Statistics s = clean();
  model::ErrorModel m = fp32_model();
  s.signal = 1e8;  // independent errors of 1e6 elements: 1e-7
  s.slope_predicted_se = s.slope_se = 1e-9;
  s.slope = 9.9e-7;
  for (const int clusters : {0, 128}) {
    s.slope_clusters = clusters;
    s.repeats = 1;
    EXPECT_FALSE(holds("G3 slope", s, m)) << clusters;
    s.repeats = 4;
    EXPECT_TRUE(holds("G3 slope", s, m)) << "four results at a time, wherever they are";
    s.repeats = 3;
    EXPECT_FALSE(holds("G3 slope", s, m)) << clusters;
  }
}

TEST(Judge, slope_of_a_short_output_is_that_of_its_flips) {
  metric::Statistics s = clean();
  s.slope_se = s.slope_predicted_se = 0;
  s.slope_flip_se = 1e-6;
  s.slope = 5.4e-6;  // sqrt(2 * 15) = 5.48
  EXPECT_TRUE(holds("G3 slope", s));
  s.slope = 5.5e-6;
  EXPECT_FALSE(holds("G3 slope", s));
  s.slope_flip_drift = 1e-7;
  EXPECT_TRUE(holds("G3 slope", s)) << "where boundaries lie";
  s.slope_flip_drift = 0;
  s.slope_flip_step = 1e-7;
  EXPECT_TRUE(holds("G3 slope", s)) << "one element weighs that much";
  s.slope_flip_step = 0;
  s.repeats = 2;
  EXPECT_TRUE(holds("G3 slope", s)) << "two at a time";
  model::ErrorModel wide = bf16_model();
  wide.output = core::Dtype::fp32;
  EXPECT_FALSE(holds("G3 slope", s, wide)) << "where nothing is rounded away";
}

}  // namespace
}  // namespace numcheck::tolerance
