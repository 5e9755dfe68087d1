// The amax of FP8 attention's gradients of scores, where it is that of keys beyond the last one.
#pragma once

#include <vector>

#include "op/reference.hpp"
#include "reference/attention_problem.hpp"

namespace numcheck::reference {

/// Libraries have been seen not to mask the keys of zeros with which they fill their last tile: such a key has the score 0, the
/// weight exp(-lse) and the gradient scale exp(-lse) (0 - D), with D = sum of do o of the query. Gradients of the tensors do
/// not change, but the amax does. Adds a finding for dp_amax if that closes the gap between what is expected and what was
/// delivered: the share is 1 - |got - such a gradient| / (got - expected).
void explain_keys_beyond(const op::FindingRequest& request, const AttentionProblem& problem,
                         std::vector<op::Finding>& findings);

}  // namespace numcheck::reference
