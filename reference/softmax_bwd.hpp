// Scaled, masked softmax, backward, in double and with its error model.
#pragma once

#include "op/reference.hpp"

namespace numcheck::reference {

/// See op::SoftmaxBwdParams for the formula.
[[nodiscard]] op::Reference softmax_bwd_reference();

}  // namespace numcheck::reference
