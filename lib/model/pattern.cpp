#include <cmath>
#include <numbers>
#include <string_view>
#include <variant>

#include "data/distribution_params.hpp"
#include "model/error_model.hpp"

namespace numcheck::model {
namespace {

/// Values in an interval that is short compared with its distance from zero all round alike.
Order order_around(double center, double half_width) {
  constexpr double kFewest = 0x1p-8;
  return std::abs(center) * kFewest > half_width ? Order::structured : Order::random;
}

/// Roughly how many numbers of the format lie between two numbers of the same sign: binades of 2^fraction_bits each.
double numbers_between(double low, double high, core::Dtype format) {
  const auto position = [](double x) {
    const int exponent = std::ilogb(x);
    return exponent + std::ldexp(std::abs(x), -exponent) - 1;
  };
  return std::ldexp(std::abs(position(high) - position(low)), core::dtype_info(format).fraction_bits);
}

/// Like order_around; in addition, sums round alike if the format has few numbers between the limits.
Order order_between(double low, double high, core::Dtype format) {
  constexpr double kFewest = 8;
  const bool few = low * high > 0 && numbers_between(low, high, format) < kFewest;
  return few ? Order::structured : order_around((low + high) / 2, std::abs(high - low) / 2);
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
    return {order_between(p.low, p.high, format), uniform_coherence(p.low, p.high)};
  }
  if (name == "large_mean") {
    const auto p = op::from_params<data::LargeMeanParams>(distribution.params);
    return {order_around(p.mean, p.sigma), normal_coherence(p.mean, p.sigma)};
  }
  if (name == "log_uniform") {
    const auto p = op::from_params<data::LogUniformParams>(distribution.params);
    return {std::abs(p.high - p.low) < 0x1p-8 ? Order::structured : Order::random, p.with_sign ? 0.0 : 1.0};
  }
  return {};
}

}  // namespace numcheck::model
