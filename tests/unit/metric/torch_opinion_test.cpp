// torch.testing.assert_close in the arithmetic of the tensor's format. Cases were made with PyTorch 2.11.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "core/isa.hpp"
#include "problem.hpp"

namespace numcheck::metric {
namespace {

using core::Dtype;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Tolerance {
  float rtol, atol;
};

Tolerance tolerance_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp32:
      return {1.3e-6F, 1e-5F};
    case Dtype::bf16:
      return {1.6e-2F, 1e-5F};
    case Dtype::fp16:
      return {1e-3F, 1e-5F};
    default:
      return {0, 0};
  }
}

/// |got - y| over its limit, one operation at a time.
double excess_of(Dtype dtype, double got, double expected) {
  const auto stored = [dtype](double x) {
    return static_cast<float>(core::round_to(static_cast<double>(static_cast<float>(x)), dtype));
  };
  const Tolerance tolerance = tolerance_of(dtype);
  const float y = stored(expected);
  const auto g = static_cast<float>(got);
  if (g == y) {
    return 0;
  }
  const float error = std::fabs(stored(g - y));
  const float limit = stored(std::fabs(stored(tolerance.rtol * y)) + tolerance.atol);
  return std::isfinite(error) ? static_cast<double>(error) / static_cast<double>(limit) : kInf;
}

Opinion opinion_of(Dtype dtype, double expected, double got) {
  Problem p = make_problem(dtype, {1, 1, 1}, 0, 1);
  p.expected[0] = expected;
  p.set_got(0, got);
  return compare(p.input()).torch_allclose;
}

bool is_close(Dtype dtype, double expected, double got) {
  const Opinion opinion = opinion_of(dtype, expected, got);
  EXPECT_EQ(opinion.mismatches != 0, opinion.max_excess > 1);
  return opinion.mismatches == 0;
}

TEST(TorchOpinion, limits_are_rounded_to_the_format) {
  // The difference is the limit: not in exact arithmetic, but as rounded, up or down.
  EXPECT_TRUE(is_close(Dtype::fp16, 0x1.f3cp+4, 0x1.f44p+4));
  EXPECT_TRUE(is_close(Dtype::fp16, -0x1.f3cp+4, -0x1.f34p+4));
  EXPECT_EQ(opinion_of(Dtype::fp16, 0x1.f3cp+4, 0x1.f44p+4).max_excess, 1);
  EXPECT_TRUE(is_close(Dtype::bf16, 0x1.f2p-3, 0x1.fap-3));
  EXPECT_EQ(opinion_of(Dtype::bf16, 0x1.f2p-3, 0x1.fap-3).max_excess, 1);
  EXPECT_TRUE(is_close(Dtype::fp32, 0x1.229662p+5, 0x1.22968p+5));
  EXPECT_FALSE(is_close(Dtype::fp32, 0x1.229662p+5, 0x1.229682p+5));
  EXPECT_EQ(opinion_of(Dtype::fp32, 0x1.229662p+5, 0x1.22968p+5).max_excess, 1);
}

TEST(TorchOpinion, the_absolute_tolerance_is_added_in_single_precision) {
  // PyTorch accepts these as CPU tensors, for which it rounds atol to the format before it adds it.
  EXPECT_FALSE(is_close(Dtype::fp16, 0x1.f14p+0, 0x1.f1cp+0));
  EXPECT_FALSE(is_close(Dtype::bf16, 0x1.dep-7, 0x1.e6p-7));
  EXPECT_FALSE(is_close(Dtype::bf16, 0x1.5ap-16, 0x1.04p-15));
}

TEST(TorchOpinion, subnormal_numbers) {
  // 1e-5 is 168 of the smallest steps of FP16.
  EXPECT_TRUE(is_close(Dtype::fp16, 0, 168 * 0x1p-24));
  EXPECT_FALSE(is_close(Dtype::fp16, 0, 169 * 0x1p-24));
  EXPECT_TRUE(is_close(Dtype::fp16, 0x1p-24, 169 * 0x1p-24));
  EXPECT_FALSE(is_close(Dtype::fp16, 0x1p-24, 170 * 0x1p-24));
  EXPECT_TRUE(is_close(Dtype::bf16, 0x1p-133, 0x1.5p-17));
  EXPECT_FALSE(is_close(Dtype::bf16, 0x1p-133, 0x1.52p-17));
  EXPECT_TRUE(is_close(Dtype::fp32, 0x1p-149, 0x1p-140));
  EXPECT_TRUE(is_close(Dtype::fp8_e4m3, 0x1p-9, 0x1p-9));
  EXPECT_FALSE(is_close(Dtype::fp8_e4m3, 0x1p-9, 0x1p-8));
}

TEST(TorchOpinion, the_reference_is_rounded_by_way_of_single_precision) {
  // 1 + 2^-11 is a tie of FP16, and what is just above it becomes that tie in FP32. FP8 allows no difference.
  EXPECT_TRUE(is_close(Dtype::fp8_e4m3, 1.05, 1));
  EXPECT_FALSE(is_close(Dtype::fp8_e4m3, 1.05, 1.125));
  EXPECT_TRUE(is_close(Dtype::fp8_e4m3, 1 + 0x1p-4 + 0x1p-40, 1)) << "nearest is 1.125";
  EXPECT_FALSE(is_close(Dtype::fp8_e4m3, 1 + 0x1p-4 + 0x1p-40, 1.125));
  EXPECT_EQ(opinion_of(Dtype::fp16, 1 + 0x1p-11 + 0x1p-40, 1).max_excess, 0);
  EXPECT_EQ(opinion_of(Dtype::bf16, 1 + 0x1p-8 + 0x1p-40, 1).max_excess, 0);
  EXPECT_FALSE(is_close(Dtype::fp16, 65520 - 0x1p-20, 65504)) << "infinite, after FP32";
  EXPECT_TRUE(is_close(Dtype::fp16, 65520 - 0x1p-20, kInf));
  EXPECT_TRUE(is_close(Dtype::fp16, 65519.9, 65504));
  EXPECT_FALSE(is_close(Dtype::bf16, 0x1.ffp127 * (1 - 0x1p-40), 0x1.fep127));
}

TEST(TorchOpinion, zeros_infinities_and_nan) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16, Dtype::fp8_e5m2}) {
    EXPECT_TRUE(is_close(dtype, 0.0, -0.0));
    EXPECT_TRUE(is_close(dtype, -0.0, 0.0));
    EXPECT_EQ(opinion_of(dtype, 0.0, -0.0).max_excess, 0);
    EXPECT_FALSE(is_close(dtype, kNan, kNan)) << "equal_nan is off";
    EXPECT_FALSE(is_close(dtype, kNan, 1));
    EXPECT_FALSE(is_close(dtype, std::bit_cast<double>(~std::uint64_t{0} >> 1), 0)) << "a full payload";
    EXPECT_FALSE(is_close(dtype, 1, kNan));
    EXPECT_FALSE(is_close(dtype, 1, kInf));
    EXPECT_FALSE(is_close(dtype, 1e300, -kInf));
  }
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    EXPECT_TRUE(is_close(dtype, kInf, kInf));
    EXPECT_TRUE(is_close(dtype, 1e300, kInf)) << "the reference overflows";
    EXPECT_FALSE(is_close(dtype, kInf, -kInf)) << "an infinite limit does not help";
    EXPECT_FALSE(is_close(dtype, kInf, 1));
    EXPECT_FALSE(is_close(dtype, 1e300, 1));
  }
}

TEST(TorchOpinion, a_difference_that_overflows_is_a_mismatch) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    const double most = core::dtype_info(dtype).max_finite;
    EXPECT_FALSE(is_close(dtype, most, -most));
    EXPECT_EQ(opinion_of(dtype, most, -most).max_excess, kInf);
    EXPECT_TRUE(is_close(dtype, most, most));
  }
  EXPECT_TRUE(is_close(Dtype::fp16, 65504, 65440)) << "64; the limit rounds to 65.5";
  EXPECT_FALSE(is_close(Dtype::fp16, 65504, 65408));
}

TEST(TorchOpinion, integers_are_equal_or_not) {
  EXPECT_TRUE(is_close(Dtype::int32, 0x1p30 + 1, 0x1p30 + 1));
  EXPECT_FALSE(is_close(Dtype::int32, 0x1p30 + 1, 0x1p30));
  EXPECT_FALSE(is_close(Dtype::uint8, 255, 254));
}

TEST(TorchOpinion, finite_elements_next_to_special_ones_are_compared_like_others) {
  Problem p = make_problem(Dtype::fp16, {1, 1, 8}, 0, 1);
  for (std::int64_t i = 0; i < 8; ++i) {
    p.expected[static_cast<std::size_t>(i)] = 1;
    p.set_got(i, i == 1 ? 1 + 0x1p-10 : 1);
  }
  p.magnitude[1] = std::numeric_limits<float>::quiet_NaN();
  p.set_got(2, kNan);
  p.set_got(3, 1 + 0x1p-8);
  EXPECT_EQ(compare(p.input()).torch_allclose.mismatches, 2U);
  EXPECT_EQ(compare(p.input()).numpy_allclose.mismatches, 3U);
  EXPECT_EQ(compare(p.input()).te_compare.mismatches, 1U);
  p.set_got(2, 1);
  p.set_got(1, 1 + 0x1p-8);
  EXPECT_EQ(compare(p.input()).torch_allclose.mismatches, 2U);
  EXPECT_EQ(compare(p.input()).te_compare.mismatches, 2U);
}

/// Correct elements, with one that has a large excess and a later one that must still be noticed.
Opinion after_another(Dtype dtype, double expected, double got, double later_expected, double later_got) {
  Problem p = make_problem(dtype, {1, 1, 640}, 0, 1);
  p.model = {};
  for (std::int64_t i = 0; i < 640; ++i) {
    p.expected[static_cast<std::size_t>(i)] = i == 3 ? expected : i == 600 ? later_expected : 1;
    p.set_got(i, i == 3 ? got : i == 600 ? later_got : 1);
  }
  return compare(p.input()).torch_allclose;
}

TEST(TorchOpinion, nothing_is_overlooked_after_a_large_excess) {
  // Less than one by the exact limits, more by the rounded ones.
  EXPECT_EQ(after_another(Dtype::bf16, 0x1.56p0, 0x1.58p0, 0x1.74p-12, 0x1.7ap-12).max_excess,
            opinion_of(Dtype::bf16, 0x1.74p-12, 0x1.7ap-12).max_excess);
  EXPECT_EQ(after_another(Dtype::fp16, 0x1.f3cp+4, 0x1.f44p+4, 65520 - 0x1p-20, 65504).mismatches, 1U);
  EXPECT_EQ(after_another(Dtype::fp8_e4m3, 1, 1.125, 1 + 0x1p-4 + 0x1p-40, 1.125).mismatches, 2U);
}

class TorchOpinions : public testing::TestWithParam<Dtype> {
 protected:
  void TearDown() override { core::force_isa(isa_); }

 private:
  core::Isa isa_ = core::active_isa();
};

/// Mostly correct outputs, a few of them off by a step or two, and references close to ties of the format.
Problem mostly_right(Dtype dtype, double scale, double wrong, std::uint64_t seed) {
  Problem p = make_problem(dtype, {1, 61, 257}, 0, seed);
  p.model = {};
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  for (std::size_t i = 0; i < p.expected.size(); ++i) {
    const double y = scale * normal(engine);
    const double ulp = core::ulp(y, dtype);
    const double tie = std::copysign((std::floor(std::fabs(y) / ulp) + 0.5) * ulp * (1 + 0x1p-30), y);
    p.expected[i] = uniform(engine) < 0.1 ? tie : y;
    const double steps = uniform(engine) < wrong ? std::round(2 * normal(engine)) : 0;
    p.set_got(static_cast<std::int64_t>(i), core::round_to(p.expected[i], dtype) + steps * ulp);
  }
  return p;
}

TEST_P(TorchOpinions, agree_with_one_element_after_the_other) {
  for (const double scale : {1e-5, 1.0, 3e3}) {
    for (const double wrong : {0.0, 0.01, 0.5}) {
      const Problem p = mostly_right(GetParam(), scale, wrong, 5);
      Opinion expected;
      for (std::size_t i = 0; i < p.expected.size(); ++i) {
        const double most = core::dtype_info(GetParam()).max_finite;
        const double y = GetParam() == Dtype::fp8_e4m3 ? std::clamp(p.expected[i], -most, most) : p.expected[i];
        const double excess = excess_of(GetParam(), p.got_at(static_cast<std::int64_t>(i)), y);
        expected.mismatches += excess > 1 ? 1 : 0;
        expected.max_excess = std::max(expected.max_excess, excess);
      }
      for (const core::Isa isa : {core::Isa::baseline, core::Isa::avx2, core::Isa::avx512}) {
        if (core::is_supported(isa)) {
          core::force_isa(isa);
          const Opinion opinion = compare(p.input()).torch_allclose;
          EXPECT_EQ(opinion.mismatches, expected.mismatches) << core::isa_name(isa) << ' ' << scale << ' ' << wrong;
          EXPECT_EQ(opinion.max_excess, expected.max_excess) << core::isa_name(isa) << ' ' << scale << ' ' << wrong;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, TorchOpinions,
                         testing::Values(Dtype::fp32, Dtype::bf16, Dtype::fp16, Dtype::fp8_e4m3, Dtype::fp8_e5m2));

}  // namespace
}  // namespace numcheck::metric
