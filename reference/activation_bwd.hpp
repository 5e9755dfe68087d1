// Activations, backward, in double and with its error model.
#pragma once

#include "op/reference.hpp"

namespace numcheck::reference {

/// See op::activation_bwd() for the formula.
[[nodiscard]] op::Reference activation_bwd_reference();

}  // namespace numcheck::reference
