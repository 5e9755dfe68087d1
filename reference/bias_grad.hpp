// The gradient of a bias, in double and with its error model.
#pragma once

#include "op/reference.hpp"

namespace numcheck::reference {

/// See op::BiasGradParams for the formula.
[[nodiscard]] op::Reference bias_grad_reference();

}  // namespace numcheck::reference
