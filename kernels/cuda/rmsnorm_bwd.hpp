// Binding of the op `rmsnorm_bwd` to the own kernel.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::cuda {

/// All modes and shapes of the op.
[[nodiscard]] const Binding& rmsnorm_bwd();

}  // namespace numcheck::kernels::cuda
