// Activations, forward, in double and with its error model.
#pragma once

#include "op/reference.hpp"

namespace numcheck::reference {

/// See op::activation_fwd() for the formula.
[[nodiscard]] op::Reference activation_fwd_reference();

}  // namespace numcheck::reference
