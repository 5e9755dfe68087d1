// FP8 scales from amaxes, as simulated devices make them, with the faults that ops share.
#pragma once

#include <string>
#include <string_view>

namespace numcheck::kernels::sim {

/// What a scale follows from besides its amax.
struct ScaleSettings {
  std::string_view format;    ///< "fp8_e4m3" or "fp8_e5m2"
  float epsilon = 0;          ///< least amax
  bool power_of_two = false;  ///< rounded down to one
};

/// op::MultiTensorScaleParams has the rule. Faults: other_format, epsilon_ignored, power_of_two_ignored, power_of_two_up,
/// scale_by_reciprocal, zero_amax_divides, infinite_amax_divides, nan_amax_propagates, quotient_overflows; others change nothing.
[[nodiscard]] float scale_from_amax(const ScaleSettings& settings, float amax, const std::string& fault);

}  // namespace numcheck::kernels::sim
