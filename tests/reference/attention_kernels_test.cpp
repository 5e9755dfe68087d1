// Loops of the attention references: exp against libm, and the same bits for every instruction set.
#include "reference/attention_kernels.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "core/isa.hpp"
#include "reference/square_products.hpp"

namespace numcheck::reference {
namespace {

using Numbers = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class AttentionKernel : public testing::Test {
 protected:
  ~AttentionKernel() override { core::force_isa(initial_); }

  /// Calls body for every instruction set that this processor has.
  template <class Body>
  static void for_each_isa(const Body& body) {
    for (const core::Isa isa : {core::Isa::baseline, core::Isa::avx2, core::Isa::avx512}) {
      if (core::force_isa(isa) == isa) {
        SCOPED_TRACE(core::isa_name(isa));
        body();
      }
    }
  }

 private:
  core::Isa initial_ = core::active_isa();
};

Numbers exponentials(Numbers x) {
  const AttentionKernels& kernels = attention_kernels();
  kernels.exponentials(x.data(), x.size(), 0, kernels.scale(x.data(), x.size(), 1));
  return x;
}

/// Arguments from where e^x is 0 to where it overflows, more of them near 0.
Numbers arguments() {
  std::mt19937_64 random(20250301);
  std::uniform_real_distribution<double> wide(-760, 720), usual(-40, 1), fraction(-1, 1);
  Numbers x;
  for (int i = 0; i < 300'000; ++i) {
    x.insert(x.end(), {wide(random), usual(random), std::ldexp(fraction(random), -static_cast<int>(random() % 60))});
  }
  return x;
}

/// The distance in ulps of the exact value; 80-bit numbers have 11 bits more than double.
double ulps_off(double x, double y) {
  const long double exact = std::exp(static_cast<long double>(x));
  const double nearest = static_cast<double>(exact);
  const double ulp = std::nextafter(nearest, kInfinity) - nearest;
  return static_cast<double>(std::fabs(static_cast<long double>(y) - exact) / static_cast<long double>(ulp));
}

TEST_F(AttentionKernel, exponential_is_off_by_less_than_1_01_ulp) {
  if (std::numeric_limits<long double>::digits < 64) {
    GTEST_SKIP() << "long double is no wider than double";
  }
  const Numbers x = arguments();
  for_each_isa([&] {
    const Numbers y = exponentials(x);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] < 709.78) {
        worst = std::max(worst, ulps_off(x[i], y[i]));
      }
    }
    EXPECT_LT(worst, 1.01);
    RecordProperty("worst_ulps", std::to_string(worst));
  });
}

// Where no result under- or overflows, a shorter way has the same bits.
TEST_F(AttentionKernel, exponentials_do_not_depend_on_their_neighbours) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> normal(-707, 709), small(-1, 1);
  Numbers x = {-707, 709, 0, -0.0, 1e-300};
  for (int i = 0; i < 10'000; ++i) {
    x.insert(x.end(), {normal(random), small(random)});
  }
  for_each_isa([&] {
    const Numbers alone = exponentials(x);
    Numbers extended = x;
    extended.push_back(-kInfinity);
    const Numbers among = exponentials(extended);
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint64_t>(alone[i]), std::bit_cast<std::uint64_t>(among[i])) << x[i];
      ASSERT_LT(ulps_off(x[i], alone[i]), 1.01) << x[i];
    }
  });
}

TEST_F(AttentionKernel, exponential_of_special_numbers) {
  const Numbers x = {0.0,   -0.0,   kInfinity,          -kInfinity,         709.782712893384, 709.782712893385,
                     1e300, -1e300, -745.1332191019411, -745.1332191019412, -744.0,           -708.5,
                     5e-324};
  for_each_isa([&] {
    const Numbers y = exponentials(x);
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], 1);
    EXPECT_EQ(y[2], kInfinity);
    EXPECT_EQ(y[3], 0);
    for (std::size_t i = 4; i < x.size(); ++i) {
      const double expected = std::exp(x[i]);
      EXPECT_TRUE(y[i] == expected || std::fabs(y[i] - expected) <= std::nextafter(expected, kInfinity) - expected)
          << x[i] << ": " << y[i] << " for " << expected;
    }
    EXPECT_TRUE(std::isnan(exponentials({std::nan("")})[0]));
  });
}

TEST_F(AttentionKernel, all_instruction_sets_produce_the_same_bits) {
  const Numbers x = arguments();
  Numbers first;
  for_each_isa([&] {
    const AttentionKernels& kernels = attention_kernels();
    Numbers y = x, results;
    for (const std::size_t count : {1U, 7U, 8U, 100U, 1003U}) {
      const WeighedKeys keys{count, y.data() + 1, x.data() + 1, x.data() + 3, x.data() + 2, y.data() + 5, 0.3, 4};
      const WeightSums sums = kernels.sums(keys);
      const RoundingSums rounded = kernels.rounding_sums(keys);
      const Magnitudes range = kernels.magnitudes(x.data(), count);
      results.insert(results.end(), {sums.keys, sums.excess, sums.excess2, sums.squares, sums.score, sums.score2,
                                     sums.reach, range.largest, range.smallest});
      const ScoreRange scaled = kernels.scale(y.data() + count, count, 0.3);
      results.insert(results.end(), {scaled.largest, scaled.least});
      results.insert(results.end(),
                     {rounded.inner2, rounded.power2, rounded.rounded1, rounded.rounded2, rounded.rounded3});
    }
    y.insert(y.end(), results.begin(), results.end());
    Numbers normal = x;
    std::erase_if(normal, [](double number) { return !(number > -700 && number < 700); });
    for (const Numbers& given : {x, normal}) {
      const Numbers powers = exponentials(given);
      y.insert(y.end(), powers.begin(), powers.end());
    }
    first = first.empty() ? y : first;
    ASSERT_EQ(first.size(), y.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint64_t>(first[i]), std::bit_cast<std::uint64_t>(y[i])) << i;
    }
  });
}

TEST_F(AttentionKernel, ranges_of_scaled_scores) {
  for_each_isa([] {
    for (std::size_t count = 1; count < 20; ++count) {
      Numbers x(count, 3);
      x.front() = 5;
      x.back() = -7;
      const ScoreRange range = attention_kernels().scale(x.data(), count, -2);
      EXPECT_EQ(range.largest, 14) << count;
      EXPECT_EQ(range.least, count == 1 ? 14 : -10) << count;
      EXPECT_EQ(x.back(), 14) << count;
      for (std::size_t at = 0; at < count; ++at) {
        Numbers bad(count, 1);
        bad[at] = std::nan("");
        EXPECT_EQ(attention_kernels().scale(bad.data(), count, 1).least, -kInfinity) << count << ", " << at;
      }
    }
    const ScoreRange nothing = attention_kernels().scale(nullptr, 0, 1);
    EXPECT_EQ(nothing.largest, -kInfinity);
    EXPECT_EQ(nothing.least, kInfinity);
  });
}

TEST_F(AttentionKernel, sums_by_hand) {
  // The third key has no weight: its score of -infinity counts for nothing.
  const Numbers weights = {1, 0.5, 0}, scores = {2, -3, -kInfinity}, inner = {1, -4, -kInfinity}, products = {4, -8, 2},
                squares = {10, 20, 40};
  const WeighedKeys keys{3, weights.data(), scores.data(), inner.data(), products.data(), squares.data(), 0.5, 3};
  for_each_isa([&] {
    const WeightSums sums = attention_kernels().sums(keys);
    EXPECT_EQ(sums.keys, 20);
    EXPECT_EQ(sums.excess, 3);  // max(|t|, |s|) - s is 0 and 6
    EXPECT_EQ(sums.excess2, 18);
    EXPECT_EQ(sums.squares, 12);
    EXPECT_EQ(sums.score, 0.5);
    EXPECT_EQ(sums.score2, 8.5);
    EXPECT_EQ(sums.reach, 3);
    const RoundingSums rounded = attention_kernels().rounding_sums(keys);
    EXPECT_EQ(rounded.inner2, 9);
    EXPECT_EQ(rounded.power2, 1.25);
    EXPECT_EQ(rounded.rounded1, 8.5);  // max(|t|, |s|) is 2 and 3, of which t is no more than the cap
    EXPECT_EQ(rounded.rounded2, 6.25);
    EXPECT_EQ(rounded.rounded3, 5.125);
  });
}

TEST_F(AttentionKernel, magnitudes_of_numbers_that_are_not_finite) {
  for_each_isa([] {
    const Numbers x = {0, -4, 0.25, 3};
    const Magnitudes range = attention_kernels().magnitudes(x.data(), x.size());
    EXPECT_EQ(range.largest, 4);
    EXPECT_EQ(range.smallest, 0.25);
    EXPECT_TRUE(range.finite);
    for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
      EXPECT_FALSE(attention_kernels().magnitudes(&bad, 1).finite);
    }
  });
}

/// Random factors and rows whose magnitudes span `octaves` powers of two around 2^center.
struct SquareCase {
  int octaves, center;
};

TEST_F(AttentionKernel, sums_of_squares_never_fall_short) {
  std::mt19937_64 random(7);
  constexpr std::int64_t kRows = 37, kCount = 130, kChannels = 29;
  for (const SquareCase given : {SquareCase{1, 0}, {30, 0}, {60, 0}, {90, 40}, {300, 0}, {4, -600}, {4, 300}}) {
    const auto numbers = [&](std::size_t size, double sign) {
      Numbers x(size);
      for (double& value : x) {
        const int exponent =
            given.center + static_cast<int>(random() % static_cast<unsigned>(given.octaves)) - given.octaves / 2;
        value = random() % 9 == 0 ? 0 : std::ldexp(1 + static_cast<double>(random() % 1000) / 1000, exponent);
        value = random() % 2 == 0 ? value : sign * value;
      }
      return x;
    };
    for (const bool transposed : {false, true}) {
      for (const auto power : {SquareProducts::Power::first, SquareProducts::Power::second}) {
        const bool squared = power == SquareProducts::Power::second;
        const Numbers factor = numbers(kRows * kCount, squared ? -1 : 1), x = numbers(kCount * kChannels, -1);
        Numbers out(kRows * kChannels, 0.0);
        SquareProducts products;
        products.set_rows({x.data(), kChannels}, kCount, kChannels);
        products.add({factor.data(), transposed ? kRows : kCount, transposed}, kRows, power, out);
        for (std::int64_t i = 0; i < kRows; ++i) {
          for (std::int64_t c = 0; c < kChannels; ++c) {
            double exact = 0;
            for (std::int64_t j = 0; j < kCount; ++j) {
              const double f = factor[static_cast<std::size_t>(transposed ? j * kRows + i : i * kCount + j)];
              const double value = x[static_cast<std::size_t>(j * kChannels + c)];
              exact += (squared ? f * f : f) * (value * value);
            }
            const double got = out[static_cast<std::size_t>(i * kChannels + c)];
            ASSERT_GE(got, exact * (1 - 1e-13)) << given.octaves << " octaves around 2^" << given.center;
            ASSERT_LE(got, exact * (1 + 2 * (kCount + 4) * 0x1p-24));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace numcheck::reference
