// Bindings of the mixture-of-experts moves and of the router to the own kernels.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::cuda {

[[nodiscard]] const Binding& moe_permute();
[[nodiscard]] const Binding& moe_unpermute();
[[nodiscard]] const Binding& router_topk();

}  // namespace numcheck::kernels::cuda
