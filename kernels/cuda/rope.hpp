// Bindings of the rotary position embedding to the own kernel.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::cuda {

[[nodiscard]] const Binding& rope_fwd();
[[nodiscard]] const Binding& rope_bwd();

}  // namespace numcheck::kernels::cuda
