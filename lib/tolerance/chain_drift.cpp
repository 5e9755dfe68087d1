#include "tolerance/chain_drift.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "tolerance/product_terms.hpp"

namespace numcheck::tolerance {
namespace {

constexpr std::int64_t kOutputs = 16;
constexpr double kUnit32 = 0x1p-24;
constexpr double kRoundingVariance = 0.1803;  // of a log-uniform value rounded to nearest, in units of u^2
constexpr double kSubnormal = 0x1p-149;       // the spacing of partial sums that are subnormal
/// Of a normal variable: more than 4 standard deviations occur once in 16 000.
constexpr double kAccident = 4;

/// Relative error of one output's chain, and the predicted square of it.
struct Replay {
  double error = 0;
  double predicted = 0;
};

Replay replay(const TermsOf& a, const TermsOf& b, std::int64_t k) {
  float chain = 0;
  double exact = 0, squares = 0;
  for (std::int64_t t = 0; t < k; ++t) {
    const double product = a.at(t) * b.at(t);  // exact: operands are FP32 numbers or shorter
    exact += product;
    squares += product * product;
    chain = std::fma(static_cast<float>(a.at(t)), static_cast<float>(b.at(t)), chain);
  }
  const double error = static_cast<double>(chain) - exact;
  if (exact == 0 || !std::isfinite(error)) {
    return {};
  }
  const double n = static_cast<double>(k);
  const double square = exact * exact;
  const double rounding = kRoundingVariance * kUnit32 * kUnit32 * n * (squares / square / 6 + 1.0 / 3);
  const double subnormal = kSubnormal / std::fabs(exact);
  return {error / exact, rounding + n / 12 * subnormal * subnormal};
}

}  // namespace

double chain_drift(const op::GemmParams& p, const op::Operand& a, const op::Operand& b) {
  if (p.m == 0 || p.n == 0 || p.k == 0) {
    return 0;
  }
  const std::int64_t outputs = std::min(kOutputs, std::max(p.m, p.n));
  double errors = 0, predicted = 0;
  for (std::int64_t s = 0; s < outputs; ++s) {
    const Replay one =
        replay(row_of(p, a, middle_of(s, outputs, p.m)), column_of(p, b, middle_of(s, outputs, p.n)), p.k);
    errors += one.error;
    predicted += one.predicted;
  }
  // Independent errors would have a sum with the variance `predicted`.
  return errors * errors > kAccident * kAccident * predicted ? std::fabs(errors) / static_cast<double>(outputs) : 0;
}

}  // namespace numcheck::tolerance
