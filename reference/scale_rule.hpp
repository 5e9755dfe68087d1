// Scales that follow from an amax: op/quantize.hpp has the rules.
#pragma once

#include "core/dtype.hpp"

namespace numcheck::reference {

/// How a recipe's FP32 scales follow from amaxes.
struct ScaleRule {
  core::Dtype codes = core::Dtype::fp8_e4m3;
  float epsilon = 0;          ///< the least amax
  bool power_of_two = false;  ///< rounded down to one
  float at_overflow = 0;      ///< the scale if the quotient overflows

  /// Precondition: amax >= 0.
  [[nodiscard]] float scale_for(double amax) const;
};

/// e of the E8M0 scale 2^(e - 127) of a block of MXFP8 codes, from 0 to 254. `up`: rounded up, else as in OCP MX.
[[nodiscard]] int block_exponent(double amax, core::Dtype codes, bool up);

}  // namespace numcheck::reference
