// `softmax_bwd` on a simulated device.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::sim {

[[nodiscard]] const Binding& softmax_bwd();

}  // namespace numcheck::kernels::sim
