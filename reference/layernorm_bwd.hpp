// LayerNorm, backward, in double and with its error model.
#pragma once

#include "op/reference.hpp"

namespace numcheck::reference {

/// See op::LayernormBwdParams for the formula.
[[nodiscard]] op::Reference layernorm_bwd_reference();

}  // namespace numcheck::reference
