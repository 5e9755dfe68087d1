// `activation_bwd` on a simulated device.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::sim {

[[nodiscard]] const Binding& activation_bwd();

}  // namespace numcheck::kernels::sim
