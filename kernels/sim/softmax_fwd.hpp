// `softmax_fwd` on a simulated device.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::sim {

[[nodiscard]] const Binding& softmax_fwd();

}  // namespace numcheck::kernels::sim
