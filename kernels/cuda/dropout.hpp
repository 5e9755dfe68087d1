// Bindings of dropout to the own kernels.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::cuda {

[[nodiscard]] const Binding& dropout_fwd();
[[nodiscard]] const Binding& dropout_bwd();

}  // namespace numcheck::kernels::cuda
