// Bounds that are stored in FP32.
#pragma once

#include <cmath>
#include <limits>

namespace numcheck::core {

/// The smallest float that is not below x; NaN for NaN.
[[nodiscard]] inline float upward(double x) noexcept {
  const auto rounded = static_cast<float>(x);
  return static_cast<double>(rounded) < x ? std::nextafter(rounded, std::numeric_limits<float>::infinity()) : rounded;
}

}  // namespace numcheck::core
