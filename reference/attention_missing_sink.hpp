// Attention that leaves its sink out.
#pragma once

#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// Libraries have been seen to accept a sink (`softmax` off_by_one or learnable) and to leave it out of the denominator.
/// Adds a finding for each output that lies where a vanilla softmax has it: with e = got - expected and g = vanilla -
/// expected, t = sum(e g) / sum(g^2) is near 1, however large rounding errors are beside g; what makes E4M3 weights
/// smaller on average is taken from e. The share is 1 - |1 - t|, with
/// the benefit of two standard errors of t.
void explain_missing_sink(const op::FindingRequest& request, std::vector<op::Finding>& findings);

}  // namespace numcheck::reference
