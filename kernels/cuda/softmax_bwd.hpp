// Binding of the op `softmax_bwd` to the own kernel.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::cuda {

[[nodiscard]] const Binding& softmax_bwd();

}  // namespace numcheck::kernels::cuda
