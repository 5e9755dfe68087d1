// `activation_fwd` on a simulated device.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::sim {

[[nodiscard]] const Binding& activation_fwd();

}  // namespace numcheck::kernels::sim
