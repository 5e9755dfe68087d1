// `bias_grad` on a simulated device.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::sim {

[[nodiscard]] const Binding& bias_grad();

}  // namespace numcheck::kernels::sim
