// Gradients of FP8 queries half of whose channels are zero.
#pragma once

#include <vector>

#include "op/reference.hpp"
#include "reference/attention_problem.hpp"

namespace numcheck::reference {

/// Libraries have been seen to leave half of the channels of dq zero in FP8, in rows beyond the last multiple of 16. Adds a
/// finding if such zeros explain 90 % of what is wrong with the numbers:
///
///   w = max(0, |e| - u max(|y|, rms of y in the row)),   share = sum of w^2 over those zeros / sum of w^2
///
/// with u the unit roundoff of dq's format. Without that allowance the rounding errors of all other rows would outweigh a few
/// wrong ones. A row counts if at least half of its channels are zero, but not all.
void explain_zero_channels(const op::FindingRequest& request, const AttentionProblem& problem,
                           std::vector<op::Finding>& findings);

}  // namespace numcheck::reference
