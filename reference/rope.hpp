// Rotary position embedding in double and with its error model.
#pragma once

#include "op/reference.hpp"

namespace numcheck::reference {

/// See op::RopeParams for the formulas.
[[nodiscard]] op::Reference rope_fwd_reference();
[[nodiscard]] op::Reference rope_bwd_reference();

}  // namespace numcheck::reference
