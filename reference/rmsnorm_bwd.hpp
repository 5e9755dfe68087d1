// RMSNorm, backward, in double and with its error model.
#pragma once

#include "op/reference.hpp"

namespace numcheck::reference {

/// See op::RmsnormBwdParams for the formula.
[[nodiscard]] op::Reference rmsnorm_bwd_reference();

}  // namespace numcheck::reference
