// Binding of the op `softmax_fwd` to the own kernel.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::cuda {

[[nodiscard]] const Binding& softmax_fwd();

}  // namespace numcheck::kernels::cuda
