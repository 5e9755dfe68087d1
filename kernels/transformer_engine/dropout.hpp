// Bindings of dropout.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::te {

/// nvte_dropout_fwd, with the generator's state {rng_seed, 0}, and nvte_dropout_bwd: BF16 and FP16 tensors.
[[nodiscard]] const Binding& dropout_fwd();
[[nodiscard]] const Binding& dropout_bwd();

}  // namespace numcheck::kernels::te
