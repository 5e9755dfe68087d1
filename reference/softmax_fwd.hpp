// Scaled, masked softmax, forward, in double and with its error model.
#pragma once

#include "op/reference.hpp"

namespace numcheck::reference {

/// See op::SoftmaxFwdParams for the formula. Findings: row sums (softmax_row_sums.hpp).
[[nodiscard]] op::Reference softmax_fwd_reference();

}  // namespace numcheck::reference
