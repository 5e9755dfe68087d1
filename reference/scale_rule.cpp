#include "reference/scale_rule.hpp"

#include <algorithm>
#include <cmath>

namespace numcheck::reference {
namespace {

constexpr int kBias = 127;
constexpr int kMostExponent = 254;

/// The largest power of two that is not above the number. Precondition: it is positive and normal.
float power_below(float number) {
  int exponent = 0;
  (void)std::frexp(number, &exponent);  // number = f 2^exponent, 1/2 <= f < 1
  return std::ldexp(1.0F, exponent - 1);
}

}  // namespace

float ScaleRule::scale_for(double amax) const {
  const float largest = std::max(static_cast<float>(amax), epsilon);
  if (largest == 0 || std::isinf(largest)) {
    return 1;
  }
  const float quotient = static_cast<float>(core::dtype_info(codes).max_finite) / largest;
  const float scale = std::isinf(quotient) ? at_overflow : quotient;
  return power_of_two ? power_below(scale) : scale;
}

int block_exponent(double amax, core::Dtype codes, bool up) {
  const double largest = core::dtype_info(codes).max_finite;
  if (amax == 0) {
    return 0;
  }
  if (std::isinf(amax)) {
    return kMostExponent;
  }
  if (!up) {
    return std::clamp(kBias + std::ilogb(amax) - std::ilogb(largest), 0, kMostExponent);
  }
  // In FP32, as on devices: the quotient of numbers next to a boundary is on it.
  const float needed = static_cast<float>(amax) * (1.0F / static_cast<float>(largest));
  if (needed == 0) {
    return 0;
  }
  int exponent = 0;
  const float fraction = std::frexp(needed, &exponent);  // needed = fraction 2^exponent, 1/2 <= fraction < 1
  return std::clamp(kBias + exponent - (fraction == 0.5F ? 1 : 0), 0, kMostExponent);
}

}  // namespace numcheck::reference
