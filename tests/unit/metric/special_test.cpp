// NaN, infinities, poison, overflow and saturation.
#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "problem.hpp"

namespace numcheck::metric {
namespace {

using core::Dtype;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Statistics with(Problem p, double expected, double got) {
  p.expected[20] = expected;
  p.set_got(20, got);
  return compare(p.input());
}

TEST(Special, nan_where_a_number_is_expected) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16, Dtype::fp8_e4m3, Dtype::fp8_e5m2}) {
    const Statistics s = with(quiet(dtype), 2, kNan);
    EXPECT_EQ(s.nonfinite_mismatch, 1U);
    EXPECT_EQ(s.finite, 64U);
    EXPECT_EQ(s.poison, 0U);
    EXPECT_EQ(s.exact_mismatch, 1U);
    EXPECT_EQ(s.arithmetic.l2, 0) << "errors are over elements that are finite on both sides";
    ASSERT_EQ(s.worst.size(), 1U);
    EXPECT_EQ(s.worst[0].index, 20);
    EXPECT_TRUE(std::isinf(s.worst[0].over_bound));
    EXPECT_EQ(s.max_over_bound, 0);
  }
}

TEST(Special, number_where_nan_is_expected) {
  EXPECT_EQ(with(quiet(Dtype::fp32), kNan, 2).nonfinite_mismatch, 1U);
  EXPECT_EQ(with(quiet(Dtype::fp32), kNan, 0).nonfinite_mismatch, 1U);
  EXPECT_EQ(with(quiet(Dtype::fp32), kNan, kInf).nonfinite_mismatch, 1U);
}

TEST(Special, nan_where_nan_is_expected_whatever_its_sign_and_payload) {
  Problem p = quiet(Dtype::fp32);
  p.expected[20] = kNan;
  for (const std::uint64_t bits : {0x7fc00000U, 0xffc00000U, 0x7fffffffU, 0x7f800001U}) {
    p.set_bits(20, bits);
    const Statistics s = compare(p.input());
    EXPECT_EQ(s.nonfinite_mismatch, 0U);
    EXPECT_EQ(s.exact_mismatch, 0U);
    EXPECT_EQ(s.finite, 64U);
  }
}

TEST(Special, a_declared_rule_may_drop_nan) {
  Problem p = quiet(Dtype::fp32);
  p.model.nan_may_become_zero = true;
  EXPECT_EQ(with(p, kNan, 0).nonfinite_mismatch, 0U);
  EXPECT_EQ(with(p, kNan, kNan).nonfinite_mismatch, 0U);
  EXPECT_EQ(with(p, kNan, 1).nonfinite_mismatch, 1U);
}

TEST(Special, infinities_keep_their_sign) {
  const Problem p = quiet(Dtype::bf16);
  EXPECT_EQ(with(p, kInf, kInf).nonfinite_mismatch, 0U);
  EXPECT_EQ(with(p, -kInf, -kInf).nonfinite_mismatch, 0U);
  EXPECT_EQ(with(p, kInf, -kInf).nonfinite_mismatch, 1U);
  EXPECT_EQ(with(p, kInf, 3).nonfinite_mismatch, 1U);
  EXPECT_EQ(with(p, kInf, kNan).nonfinite_mismatch, 1U);
  EXPECT_EQ(with(p, 3, kInf).nonfinite_mismatch, 1U);
}

TEST(Special, poison_is_counted) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16, Dtype::fp8_e4m3, Dtype::fp8_e5m2}) {
    Problem p = quiet(dtype);
    p.set_bits(3, ~std::uint64_t{0});
    p.set_bits(64, ~std::uint64_t{0});
    const Statistics s = compare(p.input());
    EXPECT_EQ(s.poison, 2U);
    EXPECT_EQ(s.nonfinite_mismatch, 2U);
    EXPECT_EQ(s.worst[0].got_bits, dtype == Dtype::fp32                         ? 0xffffffffU
                                   : core::dtype_info(dtype).storage_bytes == 2 ? 0xffffU
                                                                                : 0xffU);
  }
}

TEST(Special, overflow_threshold) {
  // FP16: 65504 is the largest number and 65520 the threshold, near which B decides.
  Problem p = quiet(Dtype::fp16);
  p.model = {};
  p.model.bound_absolute = 4;  // B = 4 + 16 (half an ulp there)
  p.model.var_absolute = 4;    // which V does not narrow
  EXPECT_EQ(with(p, 70000, kInf).nonfinite_mismatch, 0U);
  EXPECT_EQ(with(p, -70000, -kInf).nonfinite_mismatch, 0U);
  EXPECT_EQ(with(p, 70000, 65504).nonfinite_mismatch, 1U);
  EXPECT_EQ(with(p, 65523, 65504).nonfinite_mismatch, 0U) << "a correct kernel may have been below the threshold";
  EXPECT_EQ(with(p, 65530, 65504).nonfinite_mismatch, 1U) << "it has at least 65526";
  EXPECT_EQ(with(p, 65523, 7).nonfinite_mismatch, 1U) << "nor may it have been far below";
  EXPECT_EQ(with(p, 65517, kInf).nonfinite_mismatch, 0U) << "or above";
  EXPECT_EQ(with(p, 65515, kInf).nonfinite_mismatch, 1U) << "whatever it has is rounded to 65504";
  EXPECT_EQ(with(p, 65480, kInf).nonfinite_mismatch, 1U);
  EXPECT_EQ(with(p, 65505, -kInf).nonfinite_mismatch, 1U);
  EXPECT_EQ(with(p, 65519, 65504).nonfinite_mismatch, 0U);
  EXPECT_EQ(with(p, 65519, 65504).exact_mismatch, 0U);
  EXPECT_EQ(with(p, 65519, 65504).finite, 65U);
  p.model.var_absolute = 0.01;  // 0.1 times lambda, which is 4 or so, times kappa = 3
  EXPECT_EQ(with(p, 65517, kInf).nonfinite_mismatch, 1U) << "errors do not reach as far as B";
  EXPECT_EQ(with(p, 65519.5, kInf).nonfinite_mismatch, 0U);
  p.model.one_error = true;
  EXPECT_EQ(with(p, 65517, kInf).nonfinite_mismatch, 0U) << "then only B says how large errors are";
}

TEST(Special, the_largest_number_does_not_overflow_where_nothing_is_computed) {
  for (const auto& [dtype, largest] :
       {std::pair(Dtype::fp16, 65504.0), std::pair(Dtype::bf16, 0x1.fep127), std::pair(Dtype::fp32, 0x1.fffffep127)}) {
    Problem p = quiet(dtype);
    p.model = {};
    EXPECT_EQ(with(p, largest, kInf).nonfinite_mismatch, 1U);
    EXPECT_EQ(with(p, largest, largest).nonfinite_mismatch, 0U);
    EXPECT_EQ(with(p, 2 * largest, kInf).nonfinite_mismatch, 0U);
  }
}

TEST(Special, an_overflow_whose_sign_is_unknown) {
  Problem p = quiet(Dtype::fp16);
  p.model = {};
  p.model.bound_absolute = 1e6;
  p.model.var_absolute = 1e12;
  EXPECT_EQ(with(p, 2e5, -kInf).nonfinite_mismatch, 0U) << "a correct kernel may have been below -65520";
  EXPECT_EQ(with(p, 2e5, 3).nonfinite_mismatch, 0U);
  EXPECT_EQ(with(p, 2e5, kNan).nonfinite_mismatch, 1U);
  EXPECT_EQ(with(p, 9.9e5, -kInf).nonfinite_mismatch, 1U);
}

TEST(Special, partial_sums_that_may_overflow_are_only_reported) {
  Problem p = quiet(Dtype::fp32);
  p.model.overflow_magnitude = 1e30;
  p.magnitude[20] = 2e30F;
  for (const double got : {kInf, -kInf, kNan}) {
    const Statistics s = with(p, 5, got);
    EXPECT_EQ(s.nonfinite_mismatch, 0U);
    EXPECT_EQ(s.order_dependent, 1U);
  }
  EXPECT_EQ(with(p, 5, 6).finite, 65U) << "a finite output is compared";
  EXPECT_EQ(with(p, 1e39, 7).nonfinite_mismatch, 1U) << "an overflow does not become finite again";
  p.magnitude[20] = 9e29F;
  EXPECT_EQ(with(p, 5, kInf).nonfinite_mismatch, 1U);
}

TEST(Special, sums_overflow_only_towards_the_side_that_is_large_enough) {
  Problem p = quiet(Dtype::fp32);
  p.model.overflow_magnitude = 1e30;
  p.model.sum_above = -std::numeric_limits<double>::infinity();
  p.magnitude[20] = 1.5e30F;  // 1e30 and 0.5e30 of either sign
  EXPECT_EQ(with(p, 5e29, kInf).order_dependent, 1U);
  EXPECT_EQ(with(p, 5e29, -kInf).nonfinite_mismatch, 1U);
  EXPECT_EQ(with(p, 5e29, kNan).nonfinite_mismatch, 1U) << "NaN needs infinities of both signs";
  EXPECT_EQ(with(p, 0, kInf).nonfinite_mismatch, 1U) << "neither side reaches 1e30";
  p.magnitude[20] = 4e30F;
  EXPECT_EQ(with(p, 0, kNan).order_dependent, 1U);
}

TEST(Special, large_outputs_of_an_epilogue_overflow_as_their_sums_do) {
  Problem p = quiet(Dtype::fp32);
  p.model.overflow_magnitude = 1e30;
  p.model.sum_above = 10;
  p.magnitude[20] = 1.5e30F;
  EXPECT_EQ(with(p, 5e29, kInf).order_dependent, 1U);
  EXPECT_EQ(with(p, 5e29, kNan).nonfinite_mismatch, 1U);
  EXPECT_EQ(with(p, 5, kNan).order_dependent, 1U) << "any sum may be behind it";
  p.magnitude[20] = 2.8e30F;  // 1.65e30 of the sign of y, 1.15e30 of the other
  EXPECT_EQ(with(p, 5e29, kNan).order_dependent, 1U);
  p.magnitude[20] = 2.8e30F;
  EXPECT_EQ(with(p, 2e30, kNan).nonfinite_mismatch, 1U) << "2.4e30 and 0.4e30";
  p.model.minus_infinity_is_nan = true;
  EXPECT_EQ(with(p, 2e30, kNan).nonfinite_mismatch, 1U);
  EXPECT_EQ(with(p, 5e29, kNan).order_dependent, 1U);
}

TEST(Special, an_amax_is_not_negative_whatever_its_bound) {
  Problem p = quiet(Dtype::fp32);
  p.magnitude[20] = p.deviation[20] = 1e9F;
  p.model.bound_magnitude = p.model.var_second = 1;
  for (std::size_t i = 0; i < p.expected.size(); ++i) {
    p.expected[i] = std::abs(p.expected[i]);
    p.set_got(static_cast<std::int64_t>(i), p.expected[i]);
  }
  EXPECT_EQ(with(p, 5, -5).nonfinite_mismatch, 0U);
  p.port.role = op::Role::amax;
  EXPECT_EQ(with(p, 5, -5).nonfinite_mismatch, 1U);
  EXPECT_EQ(with(p, 5, 0).nonfinite_mismatch, 0U);
}

TEST(Special, poison_is_found_where_nan_is_expected) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    Problem p = quiet(dtype);
    p.expected[20] = kNan;
    p.set_bits(20, ~std::uint64_t{0});
    EXPECT_EQ(compare(p.input()).poison, 1U);
    EXPECT_EQ(compare(p.input()).nonfinite_mismatch, 1U);
  }
}

TEST(Special, infinities_may_meet_where_partial_sums_overflow) {
  Problem p = quiet(Dtype::fp32);
  p.model.overflow_magnitude = 1e30;
  p.magnitude[20] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(with(p, kInf, kNan).nonfinite_mismatch, 1U);
  p.model.overflow_possible = true;
  EXPECT_EQ(with(p, kInf, kNan).nonfinite_mismatch, 0U);
  EXPECT_EQ(with(p, kInf, 3).nonfinite_mismatch, 1U);
}

TEST(Special, eight_bit_formats_saturate) {
  for (const Dtype dtype : {Dtype::fp8_e4m3, Dtype::fp8_e5m2}) {
    const double max = core::dtype_info(dtype).max_finite;
    Problem p = quiet(dtype);
    p.model = {};
    const Statistics right = with(p, 3 * max, max);
    EXPECT_EQ(right.nonfinite_mismatch, 0U);
    EXPECT_EQ(right.exact_mismatch, 0U);
    EXPECT_EQ(right.max_over_bound, 0);
    EXPECT_GT(with(p, 3 * max, max / 2).max_over_bound, 1);
    EXPECT_EQ(with(p, 3 * max, kNan).nonfinite_mismatch, 1U) << "NaN instead of the largest number";
    EXPECT_EQ(with(p, -kInf, -max).nonfinite_mismatch, 0U);
    EXPECT_GT(with(p, kInf, -max).max_over_bound, 1);
    EXPECT_EQ(with(p, kNan, max).nonfinite_mismatch, 1U) << "saturated instead of NaN";
  }
}

TEST(Special, an_overflow_may_hide_in_a_saturated_output) {
  Problem p = quiet(Dtype::fp8_e4m3);
  p.model = {};
  p.model.overflow_magnitude = 1e30;
  p.magnitude[20] = 2e30F;
  EXPECT_EQ(with(p, 5, 448).order_dependent, 1U);
  EXPECT_EQ(with(p, 5, 448).max_over_bound, 0);
  EXPECT_GT(with(p, 5, 6).max_over_bound, 1);
  p.magnitude[20] = 9e29F;
  EXPECT_GT(with(p, 5, 448).max_over_bound, 1);
}

TEST(Special, opinions_of_other_tools) {
  const Problem p = quiet(Dtype::fp32);
  const Statistics nan_nan = with(p, kNan, kNan);
  EXPECT_EQ(nan_nan.torch_allclose.mismatches, 1U) << "assert_close: equal_nan is off";
  EXPECT_EQ(nan_nan.numpy_allclose.mismatches, 0U) << "assert_allclose: equal_nan is on";
  EXPECT_EQ(nan_nan.te_compare.mismatches, 0U);
  const Statistics nan = with(p, 1, kNan);
  EXPECT_EQ(nan.torch_allclose.mismatches, 1U);
  EXPECT_EQ(nan.numpy_allclose.mismatches, 1U);
  EXPECT_EQ(nan.te_compare.mismatches, 0U) << "compareResults lets NaN pass";
  EXPECT_TRUE(std::isinf(nan.torch_allclose.max_excess));
  const Statistics inf = with(p, 1, kInf);
  EXPECT_EQ(inf.torch_allclose.mismatches, 1U);
  EXPECT_EQ(inf.te_compare.mismatches, 1U);
  const Statistics same = with(p, kInf, kInf);
  EXPECT_EQ(same.torch_allclose.mismatches + same.numpy_allclose.mismatches + same.te_compare.mismatches, 0U);
}

TEST(Special, unrounded_infinities_do_not_spoil_total_errors) {
  Problem p = make_problem(Dtype::fp32, {1, 4, 16}, 1e-6, 3);
  p.unrounded = p.expected;
  p.unrounded[7] = kInf;
  const Statistics s = compare(p.input());
  EXPECT_TRUE(std::isfinite(s.total.l2));
  EXPECT_EQ(s.nonfinite_mismatch, 0U);
  EXPECT_EQ(s.finite, 64U);
}

TEST(Special, infinite_yardsticks_give_empty_bounds_not_nan) {
  Problem p = quiet(Dtype::fp32);
  p.magnitude[20] = std::numeric_limits<float>::infinity();
  p.deviation[20] = std::numeric_limits<float>::infinity();
  for (const double scale : {1.0, 0x1p40}) {
    p.model.output_scale = scale;
    p.model.var_magnitude = 0;
    const Statistics s = with(p, 1e20, 1.0001e20 * scale);
    EXPECT_TRUE(std::isfinite(s.z_rms)) << scale;
    EXPECT_TRUE(std::isfinite(s.slope)) << scale;
    EXPECT_FALSE(std::isnan(s.max_over_bound)) << scale;
  }
}

}  // namespace
}  // namespace numcheck::metric
