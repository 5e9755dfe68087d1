// Binding of the op `bias_grad` to the own kernel.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::cuda {

/// All kinds, modes and outputs.
[[nodiscard]] const Binding& bias_grad();

}  // namespace numcheck::kernels::cuda
