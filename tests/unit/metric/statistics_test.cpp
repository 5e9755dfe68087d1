// Every statistic against its definition in long double, over formats, layouts and ragged shapes.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "problem.hpp"

namespace numcheck::metric {
namespace {

using core::Dtype;

void expect_close(double got, double expected, double tolerance, const char* what) {
  EXPECT_NEAR(got, expected, tolerance * std::abs(expected) + 1e-300) << what;
}

void expect_norms(const ErrorNorms& got, const ErrorNorms& expected) {
  expect_close(got.max_abs, expected.max_abs, 0, "max_abs");
  expect_close(got.max_rel, expected.max_rel, 1e-15, "max_rel");
  expect_close(got.l1, expected.l1, 1e-12, "l1");
  expect_close(got.l2, expected.l2, 1e-12, "l2");
  expect_close(got.linf, expected.linf, 0, "linf");
  expect_close(got.rel_l2, expected.rel_l2, 1e-12, "rel_l2");
  expect_close(got.rms, expected.rms, 1e-12, "rms");
  EXPECT_NEAR(got.mean_signed, expected.mean_signed, 1e-12 * expected.l1) << "mean_signed";
  expect_close(got.nmse, expected.nmse, 1e-12, "nmse");
  expect_close(got.sqnr_db, expected.sqnr_db, 1e-12, "sqnr_db");
  EXPECT_NEAR(got.cosine, expected.cosine, 1e-13) << "cosine";
}

/// Square roots and quotients of the gates are taken in FP32: relative error 2^-24 each.
constexpr double kSingle = 3e-7;

void expect_statistics(const Statistics& got, const Statistics& expected) {
  EXPECT_EQ(got.elements, expected.elements);
  EXPECT_EQ(got.finite, expected.finite);
  EXPECT_EQ(got.zeros_got, expected.zeros_got);
  EXPECT_EQ(got.exact_mismatch, expected.exact_mismatch);
  EXPECT_EQ(got.ulp_histogram, expected.ulp_histogram);
  EXPECT_EQ(got.rounding_elements, expected.rounding_elements);
  expect_norms(got.arithmetic, expected.arithmetic);
  expect_close(got.rms_expected, expected.rms_expected, 1e-12, "rms_expected");
  expect_close(got.spread_ulps, expected.spread_ulps, 1e-9, "spread_ulps");
  expect_close(got.max_ulp, expected.max_ulp, 1e-14, "max_ulp");
  expect_close(got.mean_ulp, expected.mean_ulp, 1e-12, "mean_ulp");
  expect_close(got.max_over_bound, expected.max_over_bound, 1e-13, "max_over_bound");
  expect_close(got.z_rms, expected.z_rms, kSingle, "z_rms");
  expect_close(got.z_max, expected.z_max, kSingle, "z_max");
  expect_close(got.rounding_ratio, expected.rounding_ratio, 1e-12, "rounding_ratio");
  expect_close(got.rounding_ratio_perfect, expected.rounding_ratio_perfect, 1e-12, "rounding_ratio_perfect");
  expect_close(got.rounding_sd, expected.rounding_sd, 1e-9, "rounding_sd");
  expect_close(got.rounding_arith, expected.rounding_arith, kSingle, "rounding_arith");
  expect_close(got.max_over_half_ulp, expected.max_over_half_ulp, kSingle, "max_over_half_ulp");
  expect_close(got.coherence, expected.coherence, kSingle, "coherence");
  // The quantile is the upper edge of its bin: at most 1/32 of z^2 above.
  EXPECT_GE(got.z_q999, expected.z_q999 * (1 - kSingle));
  EXPECT_LE(got.z_q999, expected.z_q999 * 1.0158);
}

void expect_flips(const Statistics& got, const Statistics& expected) {
  // Tails of the normal distribution are approximated; only a distance of ten deviations is not looked at.
  constexpr double kTail = 1e-4;
  ASSERT_EQ(got.flip_rate_predicted.has_value(), expected.flip_rate_predicted.has_value());
  if (got.flip_rate_predicted) {
    EXPECT_NEAR(*got.flip_rate_predicted, *expected.flip_rate_predicted, kTail * *expected.flip_rate_predicted + 1e-7);
  }
  for (std::size_t c = 0; c < got.flips.size(); ++c) {
    EXPECT_EQ(got.flips[c].count, expected.flips[c].count) << c;
    EXPECT_EQ(got.flips[c].found, expected.flips[c].found) << c;
    EXPECT_NEAR(got.flips[c].allowed, expected.flips[c].allowed,
                kTail * expected.flips[c].allowed + 1e-6 * static_cast<double>(expected.flips[c].count))
        << c;
  }
  expect_close(got.slope_flip_se, expected.slope_flip_se, kTail, "slope_flip_se");
  expect_close(got.slope_flip_step, expected.slope_flip_step, 1e-5, "slope_flip_step");
  EXPECT_NEAR(got.slope_flip_drift, expected.slope_flip_drift, 1e-3 * expected.slope_flip_se) << "slope_flip_drift";
}

struct Layout {
  Dtype dtype;
  Shape shape;
  double noise;
};

class AgainstDefinition : public testing::TestWithParam<Layout> {};

TEST_P(AgainstDefinition, agrees) {
  const Layout& layout = GetParam();
  Problem p = make_problem(layout.dtype, layout.shape, layout.noise, 7);
  std::mt19937_64 engine(3);
  for (const double y : p.expected) {
    p.unrounded.push_back(y * (1 + 1e-3 * std::normal_distribution<double>()(engine)));
  }
  p.set_got(0, 0);
  const Statistics got = compare(p.input());
  const Statistics expected = naive_statistics(p);
  expect_statistics(got, expected);
  expect_flips(got, expected);
  expect_norms(got.total, expected.total);
  if (layout.shape.rows >= 8 && layout.shape.cols >= 8) {
    EXPECT_NEAR(got.slope, expected.slope, kSingle * (std::abs(expected.slope) + expected.slope_se) + 1e-15);
    expect_close(got.slope_se, expected.slope_se, 1e-6, "slope_se");
  } else {
    EXPECT_TRUE(std::isinf(got.slope_se));
    EXPECT_TRUE(std::isinf(got.slope_predicted_se));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, AgainstDefinition,
    testing::Values(Layout{Dtype::fp32, {1, 1, 1}, 1e-6}, Layout{Dtype::fp32, {1, 1, 7}, 1e-6},
                    Layout{Dtype::fp32, {1, 8, 8}, 1e-6}, Layout{Dtype::fp32, {1, 7, 300}, 1e-5},
                    Layout{Dtype::fp32, {3, 33, 65, 5, 3}, 1e-6}, Layout{Dtype::fp32, {1, 130, 1030, 1, 7}, 1e-6},
                    Layout{Dtype::bf16, {1, 64, 64}, 1e-5}, Layout{Dtype::bf16, {2, 9, 2051, 4, 1}, 1e-5},
                    Layout{Dtype::bf16, {70, 8, 9}, 1e-3}, Layout{Dtype::fp16, {1, 257, 41, 0, 0}, 1e-5},
                    Layout{Dtype::fp16, {1, 3, 5}, 1e-2}, Layout{Dtype::fp8_e4m3, {1, 48, 80, 3, 5}, 1e-3},
                    Layout{Dtype::fp8_e5m2, {5, 16, 16}, 1e-3}, Layout{Dtype::fp8_e5m2, {1, 1, 1500}, 0.2}));

TEST(Compare, sample_follows_the_definition) {
  Problem p = make_problem(Dtype::bf16, {2, 60, 50, 3, 1}, 1e-4, 11);
  std::mt19937_64 engine(5);
  Problem sampled = p;
  sampled.expected.clear();
  sampled.magnitude.clear();
  sampled.deviation.clear();
  for (std::int64_t i = 0; i < p.port.elements(); ++i) {
    if (engine() % 3 == 0) {
      const auto at = static_cast<std::size_t>(i);
      sampled.sample.indices.push_back(i);
      sampled.expected.push_back(p.expected[at]);
      sampled.magnitude.push_back(p.magnitude[at]);
      sampled.deviation.push_back(p.deviation[at]);
    }
  }
  const Statistics got = compare(sampled.input());
  const Statistics expected = naive_statistics(sampled);
  expect_statistics(got, expected);
  expect_flips(got, expected);
  EXPECT_NEAR(got.slope, expected.slope, kSingle * (std::abs(expected.slope) + expected.slope_se));
  expect_close(got.slope_se, expected.slope_se, 1e-6, "slope_se");
  ASSERT_FALSE(got.worst.empty());
  EXPECT_TRUE(std::binary_search(sampled.sample.indices.begin(), sampled.sample.indices.end(), got.worst[0].index));
}

TEST(Compare, a_full_sample_equals_the_dense_comparison) {
  Problem p = make_problem(Dtype::fp32, {1, 40, 50}, 1e-5, 13);
  const Statistics dense = compare(p.input());
  for (std::int64_t i = 0; i < p.port.elements(); ++i) {
    p.sample.indices.push_back(i);
  }
  const Statistics sampled = compare(p.input());
  EXPECT_NEAR(sampled.slope, dense.slope, kSingle * dense.slope_se);
  expect_close(sampled.slope_se, dense.slope_se, kSingle, "slope_se");
  expect_close(sampled.slope_predicted_se, dense.slope_predicted_se, kSingle, "slope_predicted_se");
  expect_close(sampled.z_max, dense.z_max, kSingle, "z_max");
  EXPECT_EQ(sampled.exact_mismatch, dense.exact_mismatch);
}

TEST(Compare, worst_elements_are_the_largest_in_order) {
  Problem p = make_problem(Dtype::fp32, {1, 90, 1100, 2, 0}, 1e-6, 17);
  const std::vector<std::int64_t> planted = {5, 98999, 40123, 77000, 31};
  for (std::size_t i = 0; i < planted.size(); ++i) {
    p.set_got(planted[i], p.expected[static_cast<std::size_t>(planted[i])] + 10.0 * static_cast<double>(i + 1));
  }
  const Statistics s = compare(p.input());
  ASSERT_EQ(s.worst.size(), 5U);
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_GE(s.worst[i - 1].over_bound, s.worst[i].over_bound);
  }
  for (const Worst& worst : s.worst) {
    EXPECT_NE(std::find(planted.begin(), planted.end(), worst.index), planted.end()) << worst.index;
    EXPECT_EQ(worst.got, p.got_at(worst.index));
    EXPECT_EQ(worst.expected, p.expected[static_cast<std::size_t>(worst.index)]);
  }
  EXPECT_EQ(s.max_over_bound, s.worst[0].over_bound);
}

TEST(Compare, equal_outputs_have_no_error_at_all) {
  Problem p = make_problem(Dtype::fp32, {1, 16, 16}, 0, 19);
  for (double& y : p.expected) {
    y = static_cast<float>(y);
  }
  const Statistics s = compare(p.input());
  EXPECT_EQ(s.arithmetic.l2, 0);
  EXPECT_EQ(s.max_over_bound, 0);
  EXPECT_EQ(s.z_max, 0);
  EXPECT_EQ(s.slope, 0);
  EXPECT_EQ(s.exact_mismatch, 0U);
  EXPECT_TRUE(std::isinf(s.effective_bits));
  EXPECT_TRUE(std::isinf(s.arithmetic.sqnr_db));
  EXPECT_DOUBLE_EQ(s.arithmetic.cosine, 1);
  EXPECT_TRUE(s.worst.empty());
  EXPECT_EQ(s.ulp_histogram[0], 256U);
}

TEST(Compare, no_elements) {
  const Problem p = make_problem(Dtype::bf16, {2, 0, 5}, 0, 1);
  const Statistics s = compare(p.input());
  EXPECT_EQ(s.elements, 0U);
  EXPECT_EQ(s.z_rms, 0);
  EXPECT_EQ(s.max_over_bound, 0);
  EXPECT_EQ(s.ulp_histogram[0], 0U);
  EXPECT_FALSE(s.expected_constant);
}

TEST(Compare, constant_expectation_is_noticed) {
  Problem p = make_problem(Dtype::fp32, {1, 9, 11}, 0, 1);
  EXPECT_FALSE(compare(p.input()).expected_constant);
  std::fill(p.expected.begin(), p.expected.end(), 3.0);
  EXPECT_TRUE(compare(p.input()).expected_constant);
  p.expected.back() = 4;
  EXPECT_FALSE(compare(p.input()).expected_constant);
}

TEST(Compare, expectations_that_are_stored_as_one_number_are_constant) {
  Problem p = make_problem(Dtype::bf16, {1, 9, 11}, 0, 1);
  std::fill(p.expected.begin(), p.expected.end(), 3.0);
  p.expected.back() = 3.007;  // half an ulp is 0.0078
  EXPECT_TRUE(compare(p.input()).expected_constant);
  p.expected.back() = 3.009;
  EXPECT_FALSE(compare(p.input()).expected_constant);
}

TEST(Compare, without_yardsticks_the_exact_leg_is_counted) {
  Problem p = make_problem(Dtype::bf16, {1, 20, 20}, 0, 1);
  for (std::int64_t i = 0; i < 400; ++i) {
    p.expected[static_cast<std::size_t>(i)] = static_cast<double>(i % 17 - 8);
    p.set_got(i, static_cast<double>(i % 17 - 8));
  }
  p.magnitude.clear();
  p.deviation.clear();
  EXPECT_EQ(compare(p.input()).exact_mismatch, 0U);
  p.set_bits(8, 0x8000);  // -0 where +0 is expected
  EXPECT_EQ(compare(p.input()).exact_mismatch, 0U);
  p.set_got(9, 1.0078125);
  EXPECT_EQ(compare(p.input()).exact_mismatch, 1U);
}

TEST(Compare, output_scale_applies_to_everything) {
  Problem p = make_problem(Dtype::fp8_e4m3, {1, 16, 24}, 1e-3, 23);
  const Statistics plain = compare(p.input());
  constexpr double kScale = 0.125;  // exact, so that only the format's range changes
  for (std::size_t i = 0; i < p.expected.size(); ++i) {
    p.expected[i] /= kScale;
    p.magnitude[i] /= static_cast<float>(kScale);
    p.deviation[i] /= static_cast<float>(kScale);
  }
  p.model.bound_absolute /= kScale;
  p.model.var_absolute /= kScale * kScale;
  p.model.output_scale = kScale;
  const Statistics scaled = compare(p.input());
  expect_close(scaled.z_rms, plain.z_rms, kSingle, "z_rms");
  expect_close(scaled.max_over_bound, plain.max_over_bound, 1e-13, "max_over_bound");
  expect_close(scaled.rounding_ratio, plain.rounding_ratio, 1e-13, "rounding_ratio");
  expect_close(scaled.coherence, plain.coherence, kSingle, "coherence");
  EXPECT_EQ(scaled.exact_mismatch, plain.exact_mismatch);
}

TEST(Compare, deviations_count_at_every_scale) {
  Problem p = make_problem(Dtype::fp32, {1, 8, 8}, 0, 29);
  p.expected.assign(64, 1e-25);
  p.magnitude.assign(64, 1e-24F);
  p.deviation.assign(64, 1e-25F);  // whose square is below FP32's range
  p.model = {};
  p.model.var_second = 1e-12;
  for (std::int64_t i = 0; i < 64; ++i) {
    p.set_got(i, 1e-25 * (1 + 1e-6));
  }
  const Statistics s = compare(p.input());
  EXPECT_NEAR(s.z_rms, 1, 0.1);
}

TEST(Compare, zeros_are_judged_by_their_own_variance) {
  // Zeros as relu makes them: the error is 10^40 ulps and still half a standard deviation.
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
    Problem p = make_problem(dtype, {1, 16, 24}, 1e-6, 37);
    p.model.var_second = 1e-6;
    p.model.bound_absolute = 1;
    for (std::size_t i = 0; i < p.expected.size(); i += 2) {
      p.expected[i] = 0;
      p.set_got(static_cast<std::int64_t>(i), i % 4 == 0 ? 0 : 0.00390625);
    }
    const Statistics got = compare(p.input());
    const Statistics expected = naive_statistics(p);
    expect_statistics(got, expected);
    EXPECT_LT(got.z_max, 5);
    EXPECT_GT(got.z_rms, 0.1);
  }
}

TEST(Compare, errors_beyond_single_precision_are_judged_in_double) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
    Problem p = make_problem(dtype, {1, 32, 72}, 1e-6, 43);
    p.set_got(100, 0x1p120);  // z^2 and its square are out of FP32's range
    p.expected[1200] = 1e-40;
    const Statistics got = compare(p.input());
    expect_statistics(got, naive_statistics(p));
    EXPECT_EQ(got.worst[0].index, 100);
  }
}

TEST(Compare, integers_may_have_more_bits_than_single_precision) {
  Problem p = make_problem(Dtype::int32, {1, 16, 16}, 0, 1);
  for (std::int64_t i = 0; i < 256; ++i) {
    p.expected[static_cast<std::size_t>(i)] = static_cast<double>(2147483647 - i);
    p.set_got(i, static_cast<double>(2147483647 - i + (i == 77 ? 1 : 0)));
  }
  const Statistics s = compare(p.input());
  EXPECT_EQ(s.exact_mismatch, 1U);
  EXPECT_EQ(s.max_ulp, 1);
  EXPECT_TRUE(std::isfinite(s.slope_se));
}

TEST(Compare, total_errors_of_unrounded_inputs) {
  Problem p = make_problem(Dtype::fp32, {1, 10, 10}, 1e-5, 31);
  CompareInput in = p.input();
  EXPECT_EQ(compare(in).total.l2, 0);
  in.unrounded_is_expected = true;
  const Statistics s = compare(in);
  EXPECT_EQ(s.total.l2, s.arithmetic.l2);
  EXPECT_GT(s.total.l2, 0);
  in = p.input();
  in.unrounded = in.expected;
  EXPECT_EQ(compare(in).total.l2, s.total.l2);
}

}  // namespace
}  // namespace numcheck::metric
