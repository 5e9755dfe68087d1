#include "tolerance/chain_drift.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "tolerance/product_terms.hpp"

namespace numcheck::tolerance {
namespace {

constexpr std::int64_t kFewest = 16, kMost = 1024;      // outputs
constexpr std::int64_t kSteps = std::int64_t{1} << 20;  // in all, unless the fewest outputs have more
constexpr double kUnit32 = 0x1p-24;
constexpr double kRoundingVariance = 0.1803;  // of a log-uniform value rounded to nearest, in units of u^2
constexpr double kSubnormal = 0x1p-149;       // the spacing of partial sums that are subnormal
/// Of a normal variable: more than 4 standard deviations occur once in 16 000.
constexpr double kAccident = 4;

/// Relative error of one output's chain, its part from small products, and the predicted square of it.
struct Replay {
  double error = 0;
  double small = 0;
  double predicted = 0;
};

Replay replay(const TermsOf& a, const TermsOf& b, std::int64_t k) {
  float chain = 0;
  double exact = 0, squares = 0, small = 0;
  constexpr double kSmall = 0x1p-19;  // of the sum: 16 to 32 ulps
  for (std::int64_t t = 0; t < k; ++t) {
    const double product = a.at(t) * b.at(t);  // exact: operands are FP32 numbers or shorter
    exact += product;
    squares += product * product;
    const double before = static_cast<double>(chain);
    chain = std::fma(static_cast<float>(a.at(t)), static_cast<float>(b.at(t)), chain);
    const double after = static_cast<double>(chain);
    small += std::fabs(product) < kSmall * std::fabs(after) ? after - before - product : 0;
  }
  const double error = static_cast<double>(chain) - exact;
  if (exact == 0 || !std::isfinite(error)) {
    return {};
  }
  const double n = static_cast<double>(k);
  const double square = exact * exact;
  const double rounding = kRoundingVariance * kUnit32 * kUnit32 * n * (squares / square / 6 + 1.0 / 3);
  const double subnormal = kSubnormal / std::fabs(exact);
  return {error / exact, small / exact, rounding + n / 12 * subnormal * subnormal};
}

/// Sums of what is replayed of `outputs` outputs.
struct Totals {
  double errors = 0, predicted = 0, small = 0, squares = 0;  ///< `squares` of the small parts

  void add(const Replay& one) {
    errors += one.error;
    predicted += one.predicted;
    small += one.small;
    squares += one.small * one.small;
  }

  [[nodiscard]] double drift(double outputs) const {
    constexpr double kErrors = 3, kSeen = 2.5;
    // Independent errors would have a sum with the variance `predicted`.
    const double whole = errors * errors > kAccident * kAccident * predicted ? std::fabs(errors) / outputs : 0;
    const double mean = small / outputs;
    const double error = std::sqrt(std::max(0.0, squares / outputs - mean * mean) / std::max(1.0, outputs - 1));
    return std::max(whole, std::fabs(mean) > kSeen * error ? std::fabs(mean) + kErrors * error : 0);
  }
};

}  // namespace

OutputPlace replayed_output(std::int64_t s, std::int64_t m, std::int64_t n) {
  constexpr double kGoldenRatio = 0.6180339887498949;
  const std::int64_t count = m * n;
  auto step = std::max<std::int64_t>(1, static_cast<std::int64_t>(kGoldenRatio * static_cast<double>(count)));
  while (std::gcd(step, count) != 1) {
    ++step;
  }
  // s < 1024, and a product has less than 2^50 outputs.
  const std::int64_t index = s * step % count;
  return {index / n, index % n};
}

double chain_drift(const op::GemmParams& p, const op::Operand& a, const op::Operand& b) {
  if (p.m == 0 || p.n == 0 || p.k == 0) {
    return 0;
  }
  const std::int64_t outputs = std::min(std::clamp(kSteps / p.k, kFewest, kMost), p.m * p.n);
  Totals totals;
  for (std::int64_t s = 0; s < outputs; ++s) {
    const OutputPlace place = replayed_output(s, p.m, p.n);
    totals.add(replay(row_of(p, a, place.row), column_of(p, b, place.column), p.k));
  }
  return totals.drift(static_cast<double>(outputs));
}

}  // namespace numcheck::tolerance
