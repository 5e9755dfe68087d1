// Binding of the op `layernorm_bwd` to the own kernel.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::cuda {

/// All modes and shapes of the op.
[[nodiscard]] const Binding& layernorm_bwd();

}  // namespace numcheck::kernels::cuda
