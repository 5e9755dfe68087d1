#include "data/pattern.hpp"

#include <cmath>
#include <numbers>

namespace numcheck::data {
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

Pattern uniform_pattern(const UniformParams& params, core::Dtype format) {
  return {order_between(params.low, params.high, format), uniform_coherence(params.low, params.high)};
}

Pattern large_mean_pattern(const LargeMeanParams& params, core::Dtype /*format*/) {
  return {order_around(params.mean, params.sigma), normal_coherence(params.mean, params.sigma)};
}

Pattern log_uniform_pattern(const LogUniformParams& params, core::Dtype /*format*/) {
  return {std::abs(params.high - params.low) < 0x1p-8 ? Order::structured : Order::random,
          params.with_sign ? 0.0 : 1.0};
}

Pattern activation_pattern(const ActivationParams& params, core::Dtype format) {
  constexpr std::int64_t kFewRows = 2;  // rows are sums of so few others that products of them have the same terms
  constexpr double kLittle = 0x1p-5;    // but for what 16-bit numbers hardly show

  // Products of two such tensors are m^2 +- m in ordinary channels and o^2 times that in outlier channels. A sum with 16
  // of those has FP32 ulps of 2^-19 o^2 m^2; if that exceeds m / 2, all ordinary products round alike. From a sixteenth of that on,
  // what tensor cores truncate of them may have another sign than the sum of two or three outliers. Sums of FP8 products have ten
  // bits less than FP32.
  const double mean = std::abs(params.drift);
  const double most = core::is_fp8(format) ? 0x1p8 : 0x1p14;
  // A row with the sink, along which a sum may run, does the same by itself.
  constexpr double kMostSink = 0x1p12;
  const bool drowned = params.outlier * params.outlier * mean > most || std::abs(params.sink) > kMostSink;
  const bool alike = params.noise < kLittle && params.rank <= kFewRows;
  return {drowned || alike ? Order::structured : order_around(mean, 1), normal_coherence(mean, 1)};
}

}  // namespace numcheck::data
