// Mixture-of-experts moves and the router on a simulated device.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::sim {

[[nodiscard]] const Binding& moe_permute();
[[nodiscard]] const Binding& moe_unpermute();
[[nodiscard]] const Binding& router_topk();

}  // namespace numcheck::kernels::sim
