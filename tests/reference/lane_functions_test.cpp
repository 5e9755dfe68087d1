// exp and tanh of several numbers at a time, and libm's error function, against MPFR, with the same bits on every instruction set.
#include "lane_functions.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "big.hpp"
#include "lanes_expected.hpp"

namespace numcheck::reference {
namespace {

using Numbers = std::vector<double>;
using Function = void (*)(const double* x, std::size_t count, double* out);

class LaneFunctions : public testing::EveryIsa {};

/// Numbers up to `largest` in magnitude, of all sizes, and some that are few bits long.
Numbers arguments(std::size_t count, double largest) {
  std::mt19937_64 random(20261128);
  std::uniform_real_distribution<double> fraction(-1, 1);
  Numbers x;
  while (x.size() < count) {
    const int exponent = -static_cast<int>(random() % 60);
    const double any = largest * fraction(random), usual = std::fmin(largest, 4) * fraction(random);
    x.insert(x.end(), {any, usual, std::ldexp(usual, exponent), std::ldexp(std::nearbyint(std::ldexp(usual, 7)), -7)});
  }
  return x;
}

Numbers values(Function function, const Numbers& x) {
  Numbers y(x.size());
  function(x.data(), x.size(), y.data());
  return y;
}

TEST_F(LaneFunctions, all_instruction_sets_produce_the_same_bits) {
  const Numbers x = arguments(400'000, 760);
  Numbers first;
  for_each_isa([&](const std::string& isa) {
    for (const bool exponential : {true, false}) {
      const Numbers y = values(exponential ? lane_functions().exponential : lane_functions().hyperbolic_tangent, x);
      const std::size_t from = exponential ? 0 : x.size();
      if (first.size() == from) {
        first.insert(first.end(), y.begin(), y.end());
      }
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(std::bit_cast<std::uint64_t>(first[from + i]), std::bit_cast<std::uint64_t>(y[i]))
            << isa << " at " << x[i];
      }
    }
  });
}

TEST_F(LaneFunctions, of_special_numbers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Numbers x = {0.0, -0.0, kInfinity, -kInfinity, std::nan(""), 1e308, -1e308, 5e-324};
  for_each_isa([&](const std::string& isa) {
    const Numbers e = values(lane_functions().exponential, x), t = values(lane_functions().hyperbolic_tangent, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        EXPECT_TRUE(std::isnan(e[i]) && std::isnan(t[i])) << isa;
      } else {
        EXPECT_EQ(e[i], std::exp(x[i])) << isa << " at " << x[i];
        EXPECT_EQ(t[i], std::tanh(x[i])) << isa << " at " << x[i];
      }
    }
  });
}

#ifdef NUMCHECK_HAVE_MPFR

using testing::Big;

/// The largest distance from f in ulps of it.
template <class Exact>
double worst_ulps(const Numbers& x, const Numbers& y, const Exact& f) {
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Big exact = f(Big(x[i]));
    const double size = std::fabs(exact.rounded());
    const double ulp = std::nextafter(size, std::numeric_limits<double>::infinity()) - size;
    worst = std::fmax(worst, std::fabs((Big(y[i]) - exact).rounded()) / ulp);
  }
  return worst;
}

constexpr std::size_t kCount = 20'000;

TEST_F(LaneFunctions, are_within_4_ulp_of_1200_bits) {
  const Numbers x = arguments(kCount, 700), z = arguments(kCount, 20);
  for_each_isa([&](const std::string& isa) {
    const double e = worst_ulps(x, values(lane_functions().exponential, x), [](const Big& a) { return exp(a); });
    const double t =
        worst_ulps(z, values(lane_functions().hyperbolic_tangent, z), [](const Big& a) { return tanh(a); });
    EXPECT_LE(e, 1.01) << isa;
    EXPECT_LE(t, 4) << isa;
    RecordProperty(isa, std::to_string(e) + ", " + std::to_string(t));
  });
}

// There is no error function in lanes: the references of gelu_erf call libm's, whatever the instruction set.
TEST_F(LaneFunctions, libm_is_within_4_ulp_of_1200_bits) {
  const Numbers x = arguments(kCount, 5);
  Numbers of_erf, of_erfc;
  for (const double z : x) {
    of_erf.push_back(std::erf(z));
    of_erfc.push_back(std::erfc(z));
  }
  EXPECT_LE(worst_ulps(x, of_erf, [](const Big& a) { return erf(a); }), 4);
  EXPECT_LE(worst_ulps(x, of_erfc, [](const Big& a) { return Big(1) - erf(a); }), 4);
}

#endif

}  // namespace
}  // namespace numcheck::reference
