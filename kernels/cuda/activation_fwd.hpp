// Binding of the op `activation_fwd` to the own kernel.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::cuda {

/// All kinds, modes and outputs.
[[nodiscard]] const Binding& activation_fwd();

}  // namespace numcheck::kernels::cuda
