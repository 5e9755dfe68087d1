// Dropout in double and with its error model.
#pragma once

#include "op/reference.hpp"

namespace numcheck::reference {

/// See op::DropoutParams for the formulas.
[[nodiscard]] op::Reference dropout_fwd_reference();
[[nodiscard]] op::Reference dropout_bwd_reference();

}  // namespace numcheck::reference
