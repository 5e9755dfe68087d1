// Bindings of the rotary position embedding.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::te {

/// nvte_fused_rope_forward and _backward on dense tensors in the order SBHD or BSHD, without context parallelism. The
/// gradient takes start positions since 2.10.
[[nodiscard]] const Binding& rope_fwd();
[[nodiscard]] const Binding& rope_bwd();

}  // namespace numcheck::kernels::te
