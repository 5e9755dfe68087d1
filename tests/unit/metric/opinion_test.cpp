// What torch, numpy and TransformerEngine would have said, element by element at their limits.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "metric/bound_size.hpp"
#include "problem.hpp"

namespace numcheck::metric {
namespace {

using core::Dtype;

struct Pair {
  double expected;
  double got;
};

Statistics compare_pairs(Dtype dtype, const std::vector<Pair>& pairs) {
  Problem p = make_problem(dtype, {1, 1, static_cast<std::int64_t>(pairs.size())}, 0, 1);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    p.expected[i] = pairs[i].expected;
    p.set_got(static_cast<std::int64_t>(i), pairs[i].got);
  }
  return compare(p.input());
}

TEST(Opinion, torch_defaults_of_each_format) {
  // fp32: 1.3e-6 relative plus 1e-5; 2 * 1.3e-6 + 1e-5 = 1.26e-5.
  EXPECT_EQ(compare_pairs(Dtype::fp32, {{2, 2 + 1.24e-5}}).torch_allclose.mismatches, 0U);
  EXPECT_EQ(compare_pairs(Dtype::fp32, {{2, 2 + 1.28e-5}}).torch_allclose.mismatches, 1U);
  // bf16: 1.6e-2 relative.
  EXPECT_EQ(compare_pairs(Dtype::bf16, {{1, 1.015625}}).torch_allclose.mismatches, 0U);
  EXPECT_EQ(compare_pairs(Dtype::bf16, {{1, 1.0234375}}).torch_allclose.mismatches, 1U);
  // fp16: 1e-3 relative.
  EXPECT_EQ(compare_pairs(Dtype::fp16, {{1, 1 + 0x1p-10}}).torch_allclose.mismatches, 0U);
  EXPECT_EQ(compare_pairs(Dtype::fp16, {{1, 1 + 0x1p-9}}).torch_allclose.mismatches, 1U);
  // fp8 has no row: exact.
  EXPECT_EQ(compare_pairs(Dtype::fp8_e4m3, {{1, 1}}).torch_allclose.mismatches, 0U);
  EXPECT_EQ(compare_pairs(Dtype::fp8_e4m3, {{1.01, 1}}).torch_allclose.mismatches, 0U) << "the reference is rounded";
  EXPECT_EQ(compare_pairs(Dtype::fp8_e4m3, {{1, 1.125}}).torch_allclose.mismatches, 1U);
  EXPECT_TRUE(std::isinf(compare_pairs(Dtype::fp8_e4m3, {{1, 1.125}}).torch_allclose.max_excess));
}

TEST(Opinion, largest_excess_is_exact) {
  const Statistics s = compare_pairs(Dtype::fp32, {{1, 1}, {1, 1 + 0x1p-10}, {100, 100 + 0x1p-5}, {0, 0x1p-12}});
  EXPECT_DOUBLE_EQ(s.torch_allclose.max_excess, 0x1p-5 / static_cast<double>(1e-5F + 1.3e-6F * 100.0F));
  EXPECT_TRUE(std::isinf(s.numpy_allclose.max_excess)) << "relative to zero";
  EXPECT_EQ(s.numpy_allclose.mismatches, 3U);
  EXPECT_DOUBLE_EQ(s.te_compare.max_excess, 0x1p-12 / 1e-6);
}

TEST(Opinion, numpy_is_relative_only) {
  EXPECT_EQ(compare_pairs(Dtype::fp32, {{1, 1}, {0, 0}}).numpy_allclose.mismatches, 0U);
  EXPECT_EQ(compare_pairs(Dtype::fp32, {{1 + 0.9e-7, 1}}).numpy_allclose.mismatches, 0U);
  EXPECT_EQ(compare_pairs(Dtype::fp32, {{1 + 1.1e-7, 1}}).numpy_allclose.mismatches, 1U);
}

TEST(Opinion, numpy_compares_with_the_reference_as_it_is) {
  EXPECT_EQ(compare_pairs(Dtype::bf16, {{1.001, 1}}).numpy_allclose.mismatches, 1U);
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(compare_pairs(Dtype::fp16, {{1e6, inf}}).numpy_allclose.mismatches, 1U) << "in double it is finite";
  EXPECT_EQ(compare_pairs(Dtype::fp16, {{inf, inf}, {-inf, -inf}}).numpy_allclose.mismatches, 0U);
  EXPECT_EQ(compare_pairs(Dtype::fp16, {{inf, 1}}).numpy_allclose.mismatches, 1U);
}

TEST(Opinion, transformer_engine_passes_if_either_tolerance_holds) {
  // fp32: atol 1e-6, rtol 5e-6.
  EXPECT_EQ(compare_pairs(Dtype::fp32, {{1e-3, 1.0005e-3}}).te_compare.mismatches, 0U) << "absolute holds";
  EXPECT_EQ(compare_pairs(Dtype::fp32, {{100, 100 + 4e-4}}).te_compare.mismatches, 0U) << "relative holds";
  EXPECT_EQ(compare_pairs(Dtype::fp32, {{100, 100 + 7e-4}}).te_compare.mismatches, 1U);
  EXPECT_EQ(compare_pairs(Dtype::fp32, {{0, 0.9e-6}}).te_compare.mismatches, 0U);
  EXPECT_EQ(compare_pairs(Dtype::fp32, {{0, 1.1e-6}}).te_compare.mismatches, 1U);
}

TEST(Opinion, transformer_engine_compares_with_the_rounded_reference) {
  EXPECT_EQ(compare_pairs(Dtype::fp8_e4m3, {{1.04, 1}}).te_compare.mismatches, 0U);
  EXPECT_EQ(compare_pairs(Dtype::fp8_e4m3, {{1.04, 1}}).te_compare.max_excess, 0);
}

TEST(Opinion, transformer_engine_forgives_neighbours) {
  // E4M3: 1 and 1.125 are neighbours (12.5 % apart, far beyond rtol 1e-2), 1 and 1.25 are not; so across a binade.
  EXPECT_EQ(compare_pairs(Dtype::fp8_e4m3, {{1, 1.125}}).te_compare.mismatches, 0U);
  EXPECT_EQ(compare_pairs(Dtype::fp8_e4m3, {{-1, -1.125}}).te_compare.mismatches, 0U);
  EXPECT_EQ(compare_pairs(Dtype::fp8_e4m3, {{1, 1.25}}).te_compare.mismatches, 1U);
  EXPECT_EQ(compare_pairs(Dtype::fp8_e4m3, {{2, 1.875}}).te_compare.mismatches, 0U);
  EXPECT_EQ(compare_pairs(Dtype::fp8_e4m3, {{2, 1.75}}).te_compare.mismatches, 1U);
  // bf16 neighbours differ by less than rtol; fp32 has no such rule.
  EXPECT_EQ(compare_pairs(Dtype::bf16, {{1, 1.0078125}}).te_compare.mismatches, 0U);
  EXPECT_EQ(compare_pairs(Dtype::bf16, {{1, 1.015625}}).te_compare.mismatches, 1U);
}

TEST(Opinion, own_tolerance) {
  Problem p = make_problem(Dtype::fp32, {1, 3, 11}, 0, 1);
  for (std::int64_t i = 0; i < 33; ++i) {
    p.expected[static_cast<std::size_t>(i)] = 4;
    p.set_got(i, i < 10 ? 4 + 0x1p-8 : 4.0);
  }
  CompareInput in = p.input();
  EXPECT_EQ(compare(in).plan_allclose.mismatches, 0U) << "not requested";
  in.have_allclose = true;
  in.atol = 0x1p-8;
  EXPECT_EQ(compare(in).plan_allclose.mismatches, 0U) << "the limit itself passes";
  EXPECT_EQ(compare(in).plan_allclose.max_excess, 1);
  in.atol = 0x1p-9;
  EXPECT_EQ(compare(in).plan_allclose.mismatches, 10U);
  in.rtol = 0x1p-10;
  in.atol = 0;
  EXPECT_EQ(compare(in).plan_allclose.mismatches, 0U);
  EXPECT_EQ(compare(in).plan_atol_over_ulp, 0);
  in.atol = 0x1p-20;
  EXPECT_EQ(compare(in).plan_atol_over_ulp, 2) << "an ulp of FP32 at 4 is 2^-21";
}

TEST(Opinion, own_tolerance_against_the_bound) {
  Problem p = make_problem(Dtype::fp32, {1, 4, 8}, 0, 1);
  p.model = {};
  p.model.bound_absolute = 1;
  CompareInput in = p.input();
  in.have_allclose = true;
  in.atol = 25;
  EXPECT_NEAR(compare(in).plan_limit_over_bound, 25, 1e-4);
}

TEST(Opinion, own_limits_in_ulps_and_norms_against_the_bound) {
  Problem p = make_problem(Dtype::fp32, {1, 4, 8}, 0, 1);
  p.expected.assign(p.expected.size(), 4.0);
  p.model = {};
  p.model.bound_absolute = 0.5;
  const BoundSize bound = bound_size(p.input());
  EXPECT_NEAR(bound.ulps, 0x1p20, 1) << "an ulp of FP32 at 4 is 2^-21";
  EXPECT_NEAR(bound.rel_l2, 0.125, 1e-6);
  p.model.output_scale = 1024;
  const BoundSize scaled = bound_size(p.input());
  EXPECT_NEAR(scaled.ulps, 0x1p20, 1) << "bound and number are stored times the scale";
  EXPECT_NEAR(scaled.rel_l2, 0.125, 1e-6);
}

}  // namespace
}  // namespace numcheck::metric
