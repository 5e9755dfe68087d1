#include "kernels/sim/scale_from_amax.hpp"

#include <cmath>
#include <limits>

#include "core/dtype.hpp"

namespace numcheck::kernels::sim {
namespace {

float power_of_two(float scale, bool up) {
  int exponent = 0;
  const bool is_one = std::frexp(scale, &exponent) == 0.5F;
  return std::ldexp(1.0F, exponent - (up && !is_one ? 0 : 1));
}

/// Whether an amax has no quotient, so that the scale is 1.
bool has_no_quotient(float amax, const std::string& fault) {
  return (amax == 0 && fault != "zero_amax_divides") || (std::isinf(amax) && fault != "infinite_amax_divides") ||
         (std::isnan(amax) && fault != "nan_amax_propagates");
}

}  // namespace

float scale_from_amax(const ScaleSettings& settings, float amax, const std::string& fault) {
  const bool is_e5m2 = (settings.format == "fp8_e5m2") != (fault == "other_format");
  const core::Dtype format = is_e5m2 ? core::Dtype::fp8_e5m2 : core::Dtype::fp8_e4m3;
  const auto largest = static_cast<float>(core::dtype_info(format).max_finite);
  const float least = fault == "epsilon_ignored" ? 0 : settings.epsilon;
  const float a = amax < least ? least : amax;
  if (has_no_quotient(a, fault)) {
    return 1;
  }
  float scale = fault == "scale_by_reciprocal" ? largest * (1 / a) : largest / a;
  if (std::isinf(scale) && fault != "quotient_overflows") {
    scale = std::numeric_limits<float>::max();
  }
  const bool rounds = settings.power_of_two && fault != "power_of_two_ignored" && scale > 0;
  return rounds ? power_of_two(scale, fault == "power_of_two_up") : scale;
}

}  // namespace numcheck::kernels::sim
