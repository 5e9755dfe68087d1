// RMSNorm, forward, in double and with its error model.
#pragma once

#include "op/reference.hpp"

namespace numcheck::reference {

/// See op::RmsnormFwdParams for the formula.
[[nodiscard]] op::Reference rmsnorm_fwd_reference();

}  // namespace numcheck::reference
