// Errors against the magnitudes of the terms, by hand.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "problem.hpp"

namespace numcheck::metric {
namespace {

using core::Dtype;

/// Four FP32 sums with A = 1024 and sqrt(S2) = 32; the last one cancels.
Problem four_sums() {
  Problem p = make_problem(Dtype::fp32, {1, 1, 4}, 0, 1);
  p.expected = {1024, 100, 8, 0x1p-10};
  p.magnitude.assign(4, 1024);
  p.deviation.assign(4, 32);
  for (int i = 0; i < 4; ++i) {
    p.set_got(i, p.expected[static_cast<std::size_t>(i)]);
  }
  p.set_got(3, 0x1p-10 + 0x1p-12);
  p.model.terms = true;
  p.model.reduction = 1024;
  p.model.rounded_operands = 2;
  return p;
}

TEST(Terms, an_error_of_a_cancelling_sum_is_small_against_its_terms) {
  const Statistics s = compare(four_sums().input());
  EXPECT_EQ(s.max_ulp, 0x1p21);  // 2^-12 in ulps of 2^-33
  ASSERT_TRUE(s.terms);
  EXPECT_EQ(s.terms->max_ulp, 2);                       // ulp(1024) = 2^-13
  EXPECT_EQ(s.terms->backward_error, 0x1p-22);          // 2^-12 / 2^10
  EXPECT_EQ(s.terms->backward_error_scaled, 4.0 / 32);  // 2^-22 / (2^-24 sqrt(1024))
  EXPECT_EQ(s.max_ulp_at_rms, 4);                       // rms 514, whose ulp is 2^-14
}

TEST(Terms, conditions_are_counted_by_powers_of_ten) {
  const Statistics s = compare(four_sums().input());
  ASSERT_TRUE(s.terms);
  std::array<std::uint64_t, 7> expected = {1, 1, 1, 0, 0, 0, 1};  // 1, 10.24, 128, 2^20 = 1048576
  EXPECT_EQ(s.terms->condition_histogram, expected);
  Problem p = four_sums();
  p.expected[0] = 0;
  p.set_got(0, 0);
  expected[0] = 0;
  EXPECT_EQ(compare(p.input()).terms->condition_histogram, expected) << "zeros have no condition";
}

TEST(Terms, what_fp32_does_not_hold_is_left_out) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float lost : {0x1p-145F, kInfinity}) {
    Problem p = four_sums();
    p.set_got(0, 1025);  // an error of 1 of an element that is lost
    p.deviation[0] = p.magnitude[0] = lost;
    const Statistics s = compare(p.input());
    EXPECT_EQ(s.terms->backward_error, 0x1p-22);
    EXPECT_EQ(s.terms->max_ulp, 2);
    EXPECT_EQ(s.terms->condition_histogram[0], 0U);
    const double rho = 0x1p-12 / 32 / std::sqrt(3.0);  // of one of three elements
    EXPECT_NEAR(s.effective_bits, -std::log2(rho / (0.425 * std::sqrt(2.0))), 1e-12);
    p.deviation.assign(4, lost);
    EXPECT_TRUE(std::isnan(compare(p.input()).effective_bits));
  }
}

TEST(Terms, need_not_be_what_bounds_the_error) {
  Problem p = four_sums();
  p.model.terms = false;
  p.magnitude.assign(4, 1);
  std::vector<float> terms(4, 1024);
  CompareInput input = p.input();
  input.terms = terms;
  input.term_count = 1024;
  const Statistics s = compare(input);
  EXPECT_EQ(s.terms->max_ulp, 2);
  EXPECT_EQ(s.terms->backward_error, 0x1p-22);
  EXPECT_EQ(s.terms->backward_error_scaled, 4.0 / 32);
  terms[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(compare(input).terms->backward_error, 0) << "an element without terms is left out";
  EXPECT_EQ(compare(input).terms->condition_histogram[6], 0U);
}

TEST(Terms, are_read_in_place_and_beside_special_elements) {
  for (const bool special : {false, true}) {
    Problem p = make_problem(Dtype::bf16, {1, 64, 64}, 1e-3, 7);
    if (special) {
      p.set_got(17, std::numeric_limits<double>::infinity());
    }
    std::vector<float> terms = p.magnitude;
    CompareInput input = p.input();
    input.terms = terms;
    const Statistics once = compare(input);
    std::ranges::for_each(terms, [](float& a) { a *= 4; });
    const Statistics large = compare(input);
    EXPECT_EQ(large.terms->backward_error, once.terms->backward_error / 4);
    EXPECT_EQ(large.terms->max_ulp, once.terms->max_ulp / 4);
    EXPECT_EQ(large.max_over_bound, once.max_over_bound);
  }
}

TEST(Terms, errors_without_any_terms_are_infinitely_large) {
  Problem p = four_sums();
  p.magnitude[3] = 0;
  EXPECT_TRUE(std::isinf(compare(p.input()).terms->backward_error));
}

TEST(Terms, where_outputs_are_clipped_zeros_have_no_part_in_effective_bits) {
  Problem p = four_sums();
  p.expected[0] = 0;
  p.set_got(0, 0);
  const double all = compare(p.input()).effective_bits;
  p.model.nan_may_become_zero = true;
  EXPECT_NEAR(compare(p.input()).effective_bits, all - std::log2(4.0 / 3) / 2, 1e-12);
}

/// In a single loop, in long double.
TEST(Terms, are_those_of_their_definitions) {
  Problem p = make_problem(Dtype::fp32, {2, 37, 129, 3}, 1e-5, 7);
  p.model.terms = true;
  p.model.reduction = 300;
  p.model.rounded_operands = 1;
  long double rho2 = 0, backward = 0, ulps = 0;
  std::array<std::uint64_t, 7> histogram{};
  for (std::size_t i = 0; i < p.expected.size(); ++i) {
    const long double e = std::abs(static_cast<long double>(p.got_at(static_cast<std::int64_t>(i))) - p.expected[i]);
    const long double a = p.magnitude[i];
    rho2 += e * e / (static_cast<long double>(p.deviation[i]) * static_cast<long double>(p.deviation[i]));
    backward = std::max(backward, e / a);
    ulps = std::max(ulps, e / static_cast<long double>(core::ulp(p.magnitude[i], Dtype::fp32)));
    const double bin = std::ceil(std::log10(p.magnitude[i] / std::abs(p.expected[i]))) - 1;
    ++histogram.at(static_cast<std::size_t>(std::clamp(bin, 0.0, 6.0)));
  }
  const Statistics s = compare(p.input());
  const double rho = std::sqrt(static_cast<double>(rho2) / static_cast<double>(p.expected.size()));
  EXPECT_NEAR(s.effective_bits, -std::log2(rho / 0.425), 1e-9);
  EXPECT_DOUBLE_EQ(s.terms->backward_error, static_cast<double>(backward));
  EXPECT_DOUBLE_EQ(s.terms->backward_error_scaled, static_cast<double>(backward) * 0x1p24 / std::sqrt(300.0));
  EXPECT_DOUBLE_EQ(s.terms->max_ulp, static_cast<double>(ulps));
  EXPECT_EQ(s.terms->condition_histogram, histogram);
}

TEST(Terms, effective_bits_are_relative_to_the_terms_and_count_operands) {
  Problem p = four_sums();
  const double rho = 0x1p-12 / 32 / 2;  // of one of four elements
  EXPECT_NEAR(compare(p.input()).effective_bits, -std::log2(rho / (0.425 * std::sqrt(2.0))), 1e-12);
  p.model.rounded_operands = 1;
  EXPECT_NEAR(compare(p.input()).effective_bits, -std::log2(rho / 0.425), 1e-12);
  p.deviation[3] = 0;  // no products: nothing to be relative to
  EXPECT_TRUE(std::isinf(compare(p.input()).effective_bits));
}

TEST(Terms, without_terms_effective_bits_are_those_of_the_result) {
  Problem p = four_sums();
  p.model.terms = false;
  const Statistics s = compare(p.input());
  EXPECT_FALSE(s.terms);
  EXPECT_NEAR(s.effective_bits, -std::log2(s.arithmetic.rel_l2 / 0.425), 1e-12);
}

TEST(Terms, the_rounding_of_a_short_output_is_relative_to_the_result) {
  Problem p = make_problem(Dtype::bf16, {1, 64, 64}, 0, 3);
  p.model.terms = true;
  const Statistics s = compare(p.input());
  EXPECT_NEAR(s.effective_bits, 8, 0.1);
}

TEST(Terms, flip_rate_is_the_share_of_short_outputs_that_are_not_the_nearest_number) {
  Problem p = make_problem(Dtype::bf16, {1, 8, 8}, 0, 3);
  EXPECT_EQ(compare(p.input()).flip_rate, 0.0);
  p.set_bits(5, core::encode(p.expected[5], Dtype::bf16) + 1);
  EXPECT_EQ(compare(p.input()).flip_rate, 1.0 / 64);
  EXPECT_FALSE(compare(four_sums().input()).flip_rate) << "an FP32 sum is rarely the nearest number";
  EXPECT_FALSE(compare(four_sums().input()).flip_rate_predicted);
}

TEST(Terms, residuals_of_truncated_numbers_are_half_an_ulp_from_those_of_rounded_ones) {
  Problem p = make_problem(Dtype::bf16, {1, 64, 64}, 0, 3);
  EXPECT_EQ(compare(p.input()).residual_distance, 0.0);
  for (std::int64_t i = 0; i < p.port.elements(); ++i) {
    const double y = p.expected[static_cast<std::size_t>(i)];
    p.set_bits(i, core::encode(core::round_to(y, Dtype::bf16, core::Overflow::ieee, core::Rounding::toward_zero),
                               Dtype::bf16));
  }
  EXPECT_NEAR(compare(p.input()).residual_distance.value_or(0), 0.5, 0.03);
  EXPECT_FALSE(compare(four_sums().input()).residual_distance);
}

}  // namespace
}  // namespace numcheck::metric
