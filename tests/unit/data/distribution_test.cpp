// The distributions: formulas against libm, moments, ranges and the properties that give them their names.
#include "data/distribution.hpp"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <numbers>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "data/distribution_params.hpp"
#include "data/generate_range.hpp"
#include "data/scaling.hpp"

namespace numcheck::test {
namespace {

using core::Dtype;
using core::Rounding;

constexpr core::StreamId kStream{99, 1, 2};
constexpr std::size_t kCount = 1 << 20;

std::vector<double> values_of(const std::string& name, op::Params params, std::size_t count = kCount) {
  std::vector<double> values(count);
  data::generate({name, std::move(params)}, kStream, 0, values);
  return values;
}

std::vector<double> values_of(const std::string& name) {
  return values_of(name, data::make_distribution(name).params);
}

std::vector<std::uint32_t> words_of(std::uint32_t draw, std::size_t count) {
  std::vector<std::uint32_t> words(count);
  data::generate_words(data::word_stream(kStream, draw), 0, words);
  return words;
}

double mean_of(const std::vector<double>& values, int power = 1) {
  double sum = 0;
  for (const double value : values) {
    sum += std::pow(value, power);
  }
  return sum / static_cast<double>(values.size());
}

/// Largest distance of the empirical distribution from the given one, times sqrt(n): above 2 has probability 7e-4.
template <class Cdf>
double kolmogorov(std::vector<double> values, const Cdf& cdf) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = cdf(values[i]);
    largest = std::max({largest, expected - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - expected});
  }
  return largest * std::sqrt(n);
}

double normal_cdf(double z) {
  return std::erfc(-z / std::numbers::sqrt2) / 2;
}

TEST(Normal, is_box_muller_of_the_words) {
  const std::vector<double> values = values_of("normal", {2.5});
  const std::vector<std::uint32_t> words = words_of(0, kCount);
  double worst = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (i % 128 >= 64) {
      continue;  // the sine of the element 64 before
    }
    const double radius = 2.5 * std::sqrt(-2 * std::log((words[i] + 0.5) * 0x1p-32));
    const double angle = 2 * std::numbers::pi * (words[i + 64] + 0.5) * 0x1p-32 - std::numbers::pi / 4;
    worst = std::max({worst, std::fabs(values[i] - radius * std::cos(angle)) - std::fabs(values[i]) * 0x1p-24,
                      std::fabs(values[i + 64] - radius * std::sin(angle)) - std::fabs(values[i + 64]) * 0x1p-24});
  }
  EXPECT_LT(worst, 5e-9);
}

TEST(Normal, moments_shape_and_independence) {
  const std::vector<double> values = values_of("normal");
  const double standard_error = 1 / std::sqrt(static_cast<double>(kCount));
  EXPECT_LT(std::fabs(mean_of(values)), 4 * standard_error);
  EXPECT_LT(std::fabs(mean_of(values, 2) - 1), 4 * std::sqrt(2) * standard_error);
  EXPECT_LT(std::fabs(mean_of(values, 3)), 4 * std::sqrt(15) * standard_error);
  EXPECT_LT(std::fabs(mean_of(values, 4) - 3), 4 * std::sqrt(96) * standard_error);
  EXPECT_LT(kolmogorov(values, normal_cdf), 2);
  for (const std::size_t lag : {1, 2, 16, 63, 64, 65, 128, 192, 256, 4096}) {
    double product = 0;
    for (std::size_t i = 0; i + lag < kCount; ++i) {
      product += values[i] * values[i + lag];
    }
    EXPECT_LT(std::fabs(product) / static_cast<double>(kCount), 4 * standard_error) << lag;
  }
}

/// Tests of exact results need operands that fill the FP32 significand.
TEST(Normal, mantissas_are_full) {
  std::size_t odd = 0;
  for (const double value : values_of("normal")) {
    odd += std::bit_cast<std::uint32_t>(static_cast<float>(value)) & 1;
  }
  EXPECT_NEAR(static_cast<double>(odd) / kCount, 0.5, 0.003);
}

TEST(Normal, scales_down_to_subnormals) {
  for (const double value : values_of("normal", {1e-30}, 4096)) {
    EXPECT_LT(std::fabs(value), 7e-30);
  }
}

TEST(LargeMean, mean_and_spread) {
  const std::vector<double> values = values_of("large_mean", {1000.0, 0.5});
  EXPECT_NEAR(mean_of(values), 1000, 0.005);
  std::vector<double> centred = values;
  for (double& value : centred) {
    value -= 1000;
  }
  EXPECT_NEAR(mean_of(centred, 2), 0.25, 0.003);
}

TEST(Uniform, range_and_shape) {
  const std::vector<double> values = values_of("uniform", {-2.0, 1.0});
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*low, -2);
  EXPECT_LE(*high, 1);
  EXPECT_LT(kolmogorov(values, [](double x) { return (x + 2) / 3; }), 2);
  const std::vector<double> swapped = values_of("uniform", {1.0, -2.0});
  EXPECT_GE(*std::min_element(swapped.begin(), swapped.end()), -2);
  const std::vector<double> point = values_of("uniform", {0.25, 0.25}, 1000);
  EXPECT_EQ(std::count(point.begin(), point.end(), 0.25), 1000);
}

TEST(Uniform, widest_range_stays_finite) {
  for (const double value : values_of("uniform", {-data::kLargest, data::kLargest}, 4096)) {
    EXPECT_LE(std::fabs(value), data::kLargest * 1.0000001);
  }
}

TEST(Positive, excludes_zero_and_reaches_one) {
  const std::vector<double> values = values_of("positive", {});
  EXPECT_GE(*std::min_element(values.begin(), values.end()), 0x1p-32);
  EXPECT_LE(*std::max_element(values.begin(), values.end()), 1);
  EXPECT_LT(kolmogorov(values, [](double x) { return x; }), 2);
}

TEST(Constant, is_rounded_once) {
  const std::vector<double> values = values_of("constant", {0.1}, 300);
  EXPECT_EQ(std::count(values.begin(), values.end(), static_cast<double>(0.1F)), 300);
}

TEST(LogUniform, is_the_power_of_the_word) {
  const std::vector<double> values = values_of("log_uniform", {-20.0, 12.5, true});
  const std::vector<std::uint32_t> words = words_of(0, kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const double exponent = -20 + 32.5 * ((words[i] & 0x7FFFFFFF) + 0.5) * 0x1p-31;
    const double expected = words[i] >> 31 != 0 ? -std::exp2(exponent) : std::exp2(exponent);
    ASSERT_LE(std::fabs(values[i] - expected), std::fabs(expected) * (0x1p-24 + 1e-11)) << i;
  }
}

TEST(LogUniform, range_sign_and_ends) {
  const std::vector<double> values = values_of("log_uniform", {3.0, 4.0, false});
  EXPECT_GE(*std::min_element(values.begin(), values.end()), 8);
  EXPECT_LE(*std::max_element(values.begin(), values.end()), 16);
  EXPECT_LT(kolmogorov(values, [](double x) { return std::log2(x) - 3; }), 2);
  for (const double value : values_of("log_uniform", {-149.0, 127.0, true}, 65536)) {
    ASSERT_GE(std::fabs(value), 0x1p-149);
    ASSERT_LE(std::fabs(value), 0x1p127);
  }
}

TEST(Outliers, share_and_scale) {
  const std::vector<double> values = values_of("outliers", {0.02, 1000.0});
  const std::vector<double> plain = values_of("normal");
  std::size_t scaled = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (values[i] != plain[i]) {
      ASSERT_EQ(values[i], static_cast<double>(static_cast<float>(plain[i] * 1000)));
      ++scaled;
    }
  }
  EXPECT_NEAR(static_cast<double>(scaled) / kCount, 0.02, 0.0006);
  EXPECT_EQ(values_of("outliers", {0.0, 1000.0}), plain);
  const std::vector<double> all = values_of("outliers", {1.0, 2.0}, 5000);
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i], 2 * plain[i]);
  }
}

TEST(ExactPlain, integers_of_both_signs) {
  std::set<double> seen;
  for (const double value : values_of("exact", {std::int64_t{3}}, 10000)) {
    seen.insert(value);
  }
  EXPECT_EQ(seen, (std::set<double>{-3, -2, -1, 1, 2, 3}));
}

class Ties : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Formats, Ties, testing::Values("tf32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2"),
                         [](const auto& given) { return given.param; });

TEST_P(Ties, lie_halfway_between_neighbours) {
  const Dtype dtype = *core::parse_dtype(GetParam());
  std::size_t negative = 0;
  std::size_t up = 0;
  const std::vector<double> values = values_of("ties", {GetParam()}, 20000);
  for (const double value : values) {
    const double magnitude = std::fabs(value);
    const double low = core::round_to(magnitude, dtype, core::Overflow::ieee, Rounding::toward_zero);
    const double high = core::round_to(magnitude, dtype, core::Overflow::ieee, Rounding::toward_positive);
    ASSERT_EQ(magnitude - low, high - magnitude) << value;
    ASSERT_LT(low, high);
    ASSERT_GE(magnitude, 0.125);
    ASSERT_LT(magnitude, 16);
    negative += value < 0;
    up += core::round_to(magnitude, dtype) == high;
  }
  EXPECT_NEAR(static_cast<double>(negative), 10000, 400);
  EXPECT_NEAR(static_cast<double>(up), 10000, 400);
}

TEST(TiesMixed, has_every_format) {
  for (const Dtype dtype : {Dtype::tf32, Dtype::bf16, Dtype::fp16, Dtype::fp8_e4m3, Dtype::fp8_e5m2}) {
    std::size_t ties = 0;
    for (const double value : values_of("ties", {std::string("mixed")}, 5000)) {
      const double magnitude = std::fabs(value);
      const double low = core::round_to(magnitude, dtype, core::Overflow::ieee, Rounding::toward_zero);
      const double high = core::round_to(magnitude, dtype, core::Overflow::ieee, Rounding::toward_positive);
      ties += low < high && magnitude - low == high - magnitude;
    }
    EXPECT_GT(ties, 800U) << core::dtype_info(dtype).name;
  }
}

TEST(Specials, has_every_kind) {
  const std::vector<double> values = values_of("specials", {0.5}, 1 << 16);
  const auto count = [&](auto predicate) { return std::count_if(values.begin(), values.end(), predicate); };
  EXPECT_GT(count([](double x) { return std::isnan(x); }), 1500);
  for (const double special :
       {HUGE_VAL, -HUGE_VAL, 0x1p-149, -0x1p-149, static_cast<double>(FLT_MIN), -static_cast<double>(FLT_MIN),
        static_cast<double>(FLT_MAX), -static_cast<double>(FLT_MAX), 0x1.fffffcp-127, -0x1.fffffcp-127}) {
    EXPECT_GT(count([&](double x) { return x == special; }), 1500) << special;
  }
  EXPECT_GT(count([](double x) { return x == 0 && std::signbit(x); }), 1500);
  EXPECT_GT(count([](double x) { return x == 0 && !std::signbit(x); }), 1500);
  std::set<double> subnormals;
  for (const double value : values) {
    if (std::fabs(value) > 0 && std::fabs(value) < static_cast<double>(FLT_MIN)) {
      subnormals.insert(value);
    }
  }
  EXPECT_GT(subnormals.size(), 1500U);
  EXPECT_LT(*subnormals.begin(), 0);
  const std::vector<double> plain = values_of("normal");
  EXPECT_EQ(values_of("specials", {0.0}), plain);
}

TEST(Structured, signs_flip_along_the_index) {
  const std::vector<double> values = values_of("structured", {std::int64_t{100}}, 10000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i] < 0, (i / 100) % 2 == 1) << i;
    ASSERT_GE(std::fabs(values[i]), 0.5);
    ASSERT_LE(std::fabs(values[i]), 1);
  }
  EXPECT_GT(std::accumulate(values.begin(), values.begin() + 100, 0.0), 65);
}

TEST(Scaling, follows_transformer_engine) {
  EXPECT_EQ(data::scale_from_amax(3.5, Dtype::fp8_e4m3), 448.0F / 3.5F);
  EXPECT_EQ(data::scale_from_amax(0.3F, Dtype::fp8_e5m2), 57344.0F / 0.3F);
  EXPECT_EQ(data::scale_from_amax(0, Dtype::fp8_e4m3), 1);
  EXPECT_EQ(data::scale_from_amax(HUGE_VAL, Dtype::fp8_e4m3), 1);
  EXPECT_EQ(data::scale_from_amax(std::nan(""), Dtype::fp8_e4m3), 1);
  EXPECT_EQ(data::scale_from_amax(0x1p-149, Dtype::fp8_e4m3), FLT_MAX);
  EXPECT_EQ(data::scale_inverse(3), 1.0F / 3.0F);
  EXPECT_EQ(data::scale_inverse(data::scale_from_amax(448, Dtype::fp8_e4m3)), 1);
  for (std::uint32_t bits = 0x30000000; bits < 0x50000000; bits += 9999991) {
    const auto amax = std::bit_cast<float>(bits);
    ASSERT_EQ(data::scale_from_amax(static_cast<double>(amax), Dtype::fp8_e4m3), 448.0F / amax);
  }
}

}  // namespace
}  // namespace numcheck::test
