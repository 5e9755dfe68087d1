#include "tolerance/accumulation.hpp"

#include <algorithm>
#include <cmath>

namespace numcheck::tolerance {
namespace {

constexpr double kUnit32 = 0x1p-24;
constexpr double kUnit16 = 0x1p-11;
/// E[(2^floor(log2 x) / x)^2] and E[2^floor(log2 x) / x] for log-uniform significands: 3 / (8 ln 2), 1 / (2 ln 2).
constexpr double kSquareOfPower = 0.54;
constexpr double kMeanOfPower = 0.7213;
/// Variance of rounding a log-uniform value to nearest, in units of u^2: 1 / (8 ln 2).
constexpr double kRoundingVariance = 0.1803;

/// Mean square of the partial sums, as coefficients of S2 and y^2. With several chains the sum of each is an
/// independent random walk, so their y^2 add up to S2 + y^2 / chains.
struct PartialSquare {
  double second = 0;
  double value = 0;
};

PartialSquare partial_square(double chains) {
  const double independent = chains > 1 ? 1.0 : 0.0;
  return {1.0 / 6 + independent / 3, 1.0 / (3 * chains)};
}

}  // namespace

Accumulation fma_accumulation(std::int64_t k, double drift) {
  const auto terms = static_cast<double>(k);
  const double variance = kRoundingVariance * kUnit32 * kUnit32 * terms;
  Accumulation out;
  out.magnitude = terms * kUnit32;
  out.second = variance / 6;
  out.value = variance / 3 + drift * drift;
  out.slope_slack = drift;
  return out;
}

Accumulation fused_accumulation(const model::Arithmetic& arithmetic, std::int64_t k, int fraction_bits) {
  const auto total = static_cast<double>(k);
  const double chain =
      arithmetic.promoted ? std::min(total, static_cast<double>(arithmetic.promotion_interval)) : total;
  if (k == 0) {
    return {};
  }
  const double chains = std::ceil(total / chain);
  const double steps = std::ceil(chain / arithmetic.L);
  const double unit = std::ldexp(1.0, -arithmetic.F);
  const double store_unit = std::ldexp(1.0, -arithmetic.tau);
  constexpr double kMostSlices = 64;  // split-K; no library choice observed exceeds it
  const double additions = std::min(kMostSlices, steps) + (chains > 1 ? chains : 0);
  const PartialSquare partial = partial_square(chains);
  constexpr int kFewBits = 6;  // a product of two E4M3 numbers
  const double lossy = fraction_bits <= kFewBits ? 0.25 : 1.0;

  Accumulation out;
  out.magnitude = chain * unit + (steps + 4) * store_unit + additions * kUnit32;
  out.star = out.magnitude;
  const double align = lossy * chain * unit * unit / 3;
  const double store = steps * store_unit * store_unit / 12;
  out.second = (align + store) * kSquareOfPower * partial.second + align / steps;
  out.value = (align + store) * kSquareOfPower * partial.value;
  out.absolute = total * unit * unit / 3;
  const double shrink =
      std::max(0.0, kMeanOfPower * (1 - std::ldexp(1.0, arithmetic.tau - arithmetic.F)) * store_unit / 2);
  // A step's sum has as many of the products as came before it; the last has all of them.
  const double sums = 1 + arithmetic.L / chain * steps * (steps - 1) / 2;
  out.slope = std::min(sums, steps) * shrink;
  out.value += out.slope * out.slope;
  out.second += out.slope * out.slope * (1.0 / 3 + (chains > 1 ? 1.0 : 0.0));
  // Products of few bits lose none of them until a partial sum is 2^(F - bits) times as large; from then on each of them is truncated,
  // by half a unit of the sum on average. Those that lead back from an excursion lose as much as those that lead there, so that sums
  // may become larger or smaller. Simulated with products of one size, E4M3 without promotion: 0.002 at k = 81920, 0.0036 at 131072.
  const double largest = std::sqrt(chain / 2);  // of partial sums, in products
  const double beyond = largest / std::ldexp(1.0, arithmetic.F - fraction_bits) - 1;
  if (fraction_bits <= kFewBits && beyond > 0) {
    out.slope_slack = std::min(1.0, beyond) * kMeanOfPower * unit / 4 * largest;
  }
  const double same_sign = chain / 2 * kMeanOfPower * unit * std::min(1.0, sums / steps);
  out.coherent = same_sign * same_sign;
  out.slope_coherent = same_sign;
  if (chains > 1) {
    // A single chain's coherence does not vanish as that of the whole sum does. Measured: 0.016 of the same-sign slope
    // for zero-mean data with promotion every 128 products.
    out.slope += 0.02 * same_sign;
    const Accumulation between = fma_accumulation(static_cast<std::int64_t>(chains));
    out.second += between.second;
    out.value += between.value;
  }
  return out;
}

Accumulation fp16_accumulation(const model::Arithmetic& arithmetic, std::int64_t k, bool cancels) {
  Accumulation out;
  if (k == 0) {
    return out;
  }
  const auto terms = static_cast<double>(k);
  const double unit = std::ldexp(1.0, -arithmetic.F);
  const double variance = kRoundingVariance * kUnit16 * kUnit16 * (terms + 1);
  // Rounding to nearest can push partial sums beyond A: k u (1 + u)^k A, and (1 + u)^k <= e if the bound is below A.
  const double growth = std::exp(std::min(1.0, terms * kUnit16));
  out.magnitude = (terms * unit + (terms + 4) * kUnit16) * growth;
  out.star = out.magnitude;
  out.second = variance / 6;
  out.value = variance / 3;
  const double steps = std::ceil(terms / arithmetic.L);
  const double stagnation = 0.25 * steps * kUnit16;
  out.coherent = stagnation * stagnation;
  out.slope_slack = cancels ? terms * kUnit16 * kUnit16 / 3 : 0.05 * steps * kUnit16;
  return out;
}

Accumulation either_of(const Accumulation& left, const Accumulation& right) {
  Accumulation out;
  out.magnitude = std::max(left.magnitude, right.magnitude);
  out.star = std::max(left.star, right.star);
  out.second = std::max(left.second, right.second);
  out.value = std::max(left.value, right.value);
  out.coherent = std::max(left.coherent, right.coherent);
  out.absolute = std::max(left.absolute, right.absolute);
  out.slope = std::max(left.slope, right.slope);
  out.slope_coherent = std::max(left.slope_coherent, right.slope_coherent);
  out.slope_slack = std::max(left.slope_slack, right.slope_slack);
  return out;
}

}  // namespace numcheck::tolerance
