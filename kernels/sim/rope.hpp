// Rotary position embedding on a simulated device.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::sim {

[[nodiscard]] const Binding& rope_fwd();
[[nodiscard]] const Binding& rope_bwd();

}  // namespace numcheck::kernels::sim
