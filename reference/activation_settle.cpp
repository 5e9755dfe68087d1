#include "reference/activation_settle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/codec.hpp"

namespace numcheck::reference {

Clamp clamp_of(const op::ActivationParams& params) {
  // Not by two casts in a row: GCC 12 drops them where it finds two such pairs side by side.
  const auto fp32 = [](double value) { return core::round_to(value, core::Dtype::fp32); };
  return {fp32(params.limit), fp32(params.alpha), fp32(params.offset)};
}

Tracked settle(double exact, const Declared& declared) {
  constexpr double kOverflow = 0x1.ffffffp127;  // rounds to infinity in FP32
  constexpr double kLargest = std::numeric_limits<float>::max();
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const Tracked& function = declared.function;
  const Tracked& result = declared.result;
  const bool finite = std::isfinite(declared.plain);
  const bool any_sign = function.b > 0 && std::fabs(function.y) <= function.b;
  if ((!finite && any_sign) || (finite && std::isnan(exact))) {
    return {0, kUnknown, kUnknown};
  }
  if (std::isnan(declared.plain)) {
    return {kUnknown, kUnknown, kUnknown};
  }
  const bool may_overflow = std::fabs(exact) + result.b >= kOverflow;
  const bool may_not = std::fabs(exact) - result.b < kOverflow;
  if (may_overflow && may_not) {
    return {std::clamp(exact, -kLargest, kLargest), kUnknown, kUnknown};
  }
  return finite ? Tracked(exact, result.b, result.v) : Tracked(static_cast<double>(declared.plain), result.b, result.v);
}

}  // namespace numcheck::reference
