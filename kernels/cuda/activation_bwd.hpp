// Binding of the op `activation_bwd` to the own kernel.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::cuda {

/// All kinds, modes and outputs.
[[nodiscard]] const Binding& activation_bwd();

}  // namespace numcheck::kernels::cuda
