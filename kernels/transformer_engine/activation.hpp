// Bindings of the activations to TransformerEngine's functions of the same names.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::te {

/// nvte_gelu, nvte_silu, ..., nvte_swiglu, ... and their gradients nvte_dgelu, ... There is no gelu_erf. clamped_swiglu
/// with another offset than 1 needs the functions that take it, which older versions lack.
[[nodiscard]] const Binding& activation_fwd();
[[nodiscard]] const Binding& activation_bwd();

}  // namespace numcheck::kernels::te
