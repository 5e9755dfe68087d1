// Binding of the op `rmsnorm_fwd` to the own kernel.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::cuda {

/// All modes and shapes of the op.
[[nodiscard]] const Binding& rmsnorm_fwd();

}  // namespace numcheck::kernels::cuda
