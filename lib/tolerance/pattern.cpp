#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>
#include <variant>

#include "data/distribution_params.hpp"
#include "tolerance/error_model.hpp"

namespace numcheck::tolerance {
namespace {

/// Values in an interval that is short against its distance from zero round alike in every binade of the format, and so
/// do their sums where the format itself has few numbers there: half_width / (u |center|), if that is below `fewest`.
Order order_around(double center, double half_width, core::Dtype format, double fewest) {
  const double shortest = std::max(0x1p-8, fewest * core::dtype_info(format).unit_roundoff);
  return std::abs(center) * shortest > half_width ? Order::structured : Order::random;
}

/// |low + high| / 2 over the mean of |x|, which for limits of different signs is (low^2 + high^2) / (2 (high - low)).
double uniform_coherence(double low, double high) {
  return low * high >= 0 ? 1 : std::abs(high * high - low * low) / (high * high + low * low);
}

/// |mean| over the mean of a folded normal variable, sigma sqrt(2 / pi) exp(-x^2) + mean erf(x), x = mean / (sigma
/// sqrt 2).
double normal_coherence(double mean, double sigma) {
  const double x = std::abs(mean) / (sigma * std::numbers::sqrt2);
  return x == 0 ? 0 : 1 / (std::exp(-x * x) * std::numbers::inv_sqrtpi / x + std::erf(x));
}

}  // namespace

Pattern pattern_of(const data::Distribution& distribution, core::Dtype format) {
  const std::string_view name = distribution.name;
  if (name == "constant") {
    return {Order::constant, 1};
  }
  if (name == "structured" || name == "patterns") {
    return {Order::structured, 0};
  }
  if (name == "rows") {
    return {Order::structured, 1};  // two rows in three have means far from zero
  }
  if (name == "positive") {
    return {Order::random, 1};
  }
  if (name == "uniform") {
    const auto p = op::from_params<data::UniformParams>(distribution.params);
    return {order_around((p.low + p.high) / 2, std::abs(p.high - p.low) / 2, format, 8),
            uniform_coherence(p.low, p.high)};
  }
  if (name == "large_mean") {
    const auto p = op::from_params<data::LargeMeanParams>(distribution.params);
    return {order_around(p.mean, p.sigma, format, 2), normal_coherence(p.mean, p.sigma)};
  }
  if (name == "log_uniform") {
    const auto p = op::from_params<data::LogUniformParams>(distribution.params);
    return {std::abs(p.high - p.low) < 0x1p-8 ? Order::structured : Order::random, p.with_sign ? 0.0 : 1.0};
  }
  return {};
}

}  // namespace numcheck::tolerance
