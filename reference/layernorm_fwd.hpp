// LayerNorm, forward, in double and with its error model.
#pragma once

#include "op/reference.hpp"

namespace numcheck::reference {

/// See op::LayernormFwdParams for the formula.
[[nodiscard]] op::Reference layernorm_fwd_reference();

}  // namespace numcheck::reference
