// Elements of which nothing can be asked: which they are, and that they are counted.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "problem.hpp"

namespace numcheck::metric {
namespace {

using core::Dtype;

Statistics with(Problem p, double expected, double got) {
  p.expected[20] = expected;
  p.set_got(20, got);
  return compare(p.input());
}

TEST(Unjudged, every_element_that_is_not_judged_is_counted) {
  Problem p = quiet(Dtype::fp32);
  EXPECT_EQ(with(p, 5, 5).judged(), 1);
  p.magnitude[20] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(with(p, 5, 7).unknown, 1U) << "a NaN bound is not an agreement";
  EXPECT_EQ(with(p, 5, 7).judged(), 64.0 / 65);
  p.deviation[20] = std::numeric_limits<float>::quiet_NaN();
  p.magnitude[20] = 1;
  EXPECT_EQ(with(p, 5, 7).unknown, 1U);
  p = quiet(Dtype::fp32);
  p.model.bound_magnitude = p.model.var_second = 1;
  p.model.var_magnitude = 0;
  p.magnitude[20] = 2e38F;
  p.deviation[20] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(with(p, 5, 7).undetermined, 1U);
  p.deviation[20] = 1;
  EXPECT_EQ(with(p, 5, 7).judged(), 1) << "V asks something";
  p.magnitude[20] = p.deviation[20] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(with(p, 5, 7).unknown, 1U) << "an infinite bound";
  p.model.exact = true;
  EXPECT_EQ(with(p, 5, 7).judged(), 1) << "bits are compared, whatever the bound";
  EXPECT_EQ(with(p, 5, 7).exact_mismatch, 1U);
}

TEST(Unjudged, bounds_as_large_as_the_format_ask_nothing_but_that_it_saturates) {
  Problem p = quiet(Dtype::fp8_e4m3);
  p.model.bound_magnitude = p.model.var_second = 1;
  p.magnitude[20] = 500;
  p.deviation[20] = 500;
  EXPECT_EQ(with(p, 100, -100).undetermined, 1U);
  EXPECT_EQ(with(p, 2000, 448).judged(), 1) << "at least 1500 in any order";
  EXPECT_EQ(with(p, 2000, 448).nonfinite_mismatch, 0U);
  EXPECT_EQ(with(p, 2000, 416).nonfinite_mismatch, 1U);
}

TEST(Unjudged, bounds_as_large_as_all_of_the_output_ask_nothing) {
  Problem p = quiet(Dtype::fp32);
  double largest = 5;
  for (const double y : p.expected) {
    largest = std::max(largest, std::abs(y));
  }
  p.model.bound_magnitude = p.model.var_second = 1;
  p.magnitude[20] = p.deviation[20] = static_cast<float>(30 * largest);
  EXPECT_EQ(with(p, 5, -5).undetermined, 1U) << "whatever the output has elsewhere would pass here";
  p.deviation[20] = 1e-3F;
  EXPECT_EQ(with(p, 5, 5).judged(), 1) << "V asks something";
  p.magnitude[20] = p.deviation[20] = 1;
  EXPECT_EQ(with(p, 5, 5).judged(), 1);
}

/// A problem of which the elements from 40 on have an error that is three times, and a bound that is 30 times as large as all
/// numbers.
Problem with_unjudged(Dtype dtype) {
  Problem p = quiet(dtype);
  double largest = 0;
  for (const double y : p.expected) {
    largest = std::max(largest, std::abs(y));
  }
  p.model = {};
  p.model.output = dtype;
  p.model.bound_magnitude = p.model.var_second = 1;
  for (std::size_t i = 0; i < p.magnitude.size(); ++i) {
    p.magnitude[i] = static_cast<float>(i < 40 ? 1 : 30 * largest);
    p.deviation[i] = p.magnitude[i] / 2;
    if (i >= 40) {
      p.set_got(static_cast<std::int64_t>(i), p.expected[i] + 3 * largest);
    }
  }
  return p;
}

TEST(Unjudged, elements_do_not_count_in_means) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
    Problem p = with_unjudged(dtype);
    const Statistics clean = compare(p.input());
    EXPECT_EQ(clean.undetermined, 25U);
    EXPECT_EQ(clean.left_out, 25U);
    EXPECT_EQ(clean.counted(), 40U);
    EXPECT_EQ(clean.z_rms, 0);
    EXPECT_EQ(clean.slope, 0);
    EXPECT_GT(clean.z_max, 0) << "that of each element is known";
    EXPECT_GT(clean.arithmetic.rel_l2, 1) << "norms are those of all elements";
    for (std::size_t i = 0; i < 40; ++i) {
      p.expected[i] -= 1;
    }
    const Statistics wrong = compare(p.input());
    EXPECT_NEAR(wrong.z_rms, 2, 0.1) << "not less for those that are not judged";
    EXPECT_EQ(wrong.z_histogram[0], 0U);
  }
}

TEST(Unjudged, elements_still_have_a_bound) {
  Problem p = with_unjudged(Dtype::fp32);
  EXPECT_LE(compare(p.input()).max_over_bound, 1);
  p.set_got(50, 2.0 * static_cast<double>(p.magnitude[50]));
  const Statistics wrong = compare(p.input());
  EXPECT_GT(wrong.max_over_bound, 1.5);
  EXPECT_EQ(wrong.worst.front().index, 50);
}

TEST(Unjudged, elements_outside_a_sample_are_counted) {
  Problem p = quiet(Dtype::fp32);
  const op::Sample sample{{3, 20, 64}};
  CompareInput input = p.input();
  for (std::size_t i = 0; i < sample.indices.size(); ++i) {
    p.expected[i] = p.expected[static_cast<std::size_t>(sample.indices[i])];
  }
  input.sample = &sample;
  input.expected = input.expected.first(3);
  input.magnitude = input.magnitude.first(3);
  input.deviation = input.deviation.first(3);
  input.unrounded = {};
  EXPECT_EQ(compare(input).elements, 3U);
  EXPECT_EQ(compare(input).unsampled, 62U);
}

TEST(Unjudged, what_the_op_leaves_to_the_implementation_need_not_be_judged) {
  Problem p = quiet(Dtype::fp32);
  p.model.bound_magnitude = p.model.var_second = 1;
  p.magnitude[20] = 2e38F;
  p.deviation[20] = std::numeric_limits<float>::infinity();
  const std::vector<op::OutputValues::Range> outside = {{3, 5}, {20, 21}};
  CompareInput input = p.input();
  input.outside = outside;
  EXPECT_EQ(compare(input).judged(), 1);
  EXPECT_EQ(compare(input).outside, 1U);
}

TEST(Unjudged, what_the_op_leaves_to_the_implementation_does_not_depend_on_an_order) {
  Problem p = quiet(Dtype::fp32);
  p.model.overflow_magnitude = 1e38;
  p.model.overflow_may_be_finite = true;
  p.magnitude[20] = 2e38F;
  p.expected[20] = 0;
  p.set_bits(20, 0);
  CompareInput input = p.input();
  EXPECT_EQ(compare(input).order_dependent, 1U);
  const std::vector<op::OutputValues::Range> outside = {{20, 21}};
  input.outside = outside;
  EXPECT_EQ(compare(input).order_dependent, 0U);
  EXPECT_EQ(compare(input).judged(), 1);
}

}  // namespace
}  // namespace numcheck::metric
