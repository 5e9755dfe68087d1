// The simulated device: one binding per op.
#pragma once

#include "kernels/contract/binding.hpp"
#include "op/ops.hpp"

namespace numcheck::kernels::sim {

/// All modes and shapes of each op.
#define NUMCHECK_DECLARE(name) [[nodiscard]] const Binding& name();
NUMCHECK_OPS(NUMCHECK_DECLARE)
#undef NUMCHECK_DECLARE

}  // namespace numcheck::kernels::sim
