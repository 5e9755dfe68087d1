#include "data/scaling.hpp"

#include <cmath>
#include <limits>

namespace numcheck::data {

float scale_from_amax(double amax, core::Dtype dtype) noexcept {
  if (!std::isfinite(amax) || amax == 0) {
    return 1;
  }
  // The quotient of two FP32 numbers, rounded to double and then to FP32, is the correctly rounded one (Figueroa,
  // SIGNUM Newsletter 30, 1995: 53 >= 2 * 24 + 2).
  const auto scale = static_cast<float>(core::dtype_info(dtype).max_finite / amax);
  return std::isinf(scale) ? std::numeric_limits<float>::max() : scale;
}

float scale_inverse(float scale) noexcept {
  return 1.0F / scale;
}

}  // namespace numcheck::data
