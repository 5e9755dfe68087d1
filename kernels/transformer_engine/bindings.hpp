// TransformerEngine's library: one binding per op.
#pragma once

#include "kernels/contract/binding.hpp"
#include "op/ops.hpp"

namespace numcheck::kernels::transformer_engine {

/// What the library supports, and the functions it is called through, is said where each is defined.
#define NUMCHECK_DECLARE(name) [[nodiscard]] const Binding& name();
NUMCHECK_OPS(NUMCHECK_DECLARE)
#undef NUMCHECK_DECLARE

}  // namespace numcheck::kernels::transformer_engine
