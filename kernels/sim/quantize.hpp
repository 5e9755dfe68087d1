// FP8 casts and transposes on a simulated device.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::sim {

[[nodiscard]] const Binding& quantize();
[[nodiscard]] const Binding& dequantize();
[[nodiscard]] const Binding& transpose();

}  // namespace numcheck::kernels::sim
