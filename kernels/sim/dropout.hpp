// Dropout on a simulated device.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::sim {

[[nodiscard]] const Binding& dropout_fwd();
[[nodiscard]] const Binding& dropout_bwd();

}  // namespace numcheck::kernels::sim
