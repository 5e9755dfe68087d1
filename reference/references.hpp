// The double-precision formula and the error model of each op.
#pragma once

#include "op/ops.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// `rope_fwd_reference()` and so on; the formula is in the doc of the parameters, op::RopeParams.
#define NUMCHECK_DECLARE(name) [[nodiscard]] op::Reference name##_reference();
NUMCHECK_OPS(NUMCHECK_DECLARE)
#undef NUMCHECK_DECLARE

}  // namespace numcheck::reference
