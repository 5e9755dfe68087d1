// FP8 attention whose amax is that of padding as well.
#pragma once

#include <vector>

#include "op/reference.hpp"
#include "reference/attention_problem.hpp"

namespace numcheck::reference {

/// Libraries have been seen to leave padding in the amax of weights and outputs: 64 queries that are all beyond a sequence's
/// length, and zeros that fill the last tile of 128 queries, count, weighed over whole blocks of 128 or 256 keys before the
/// sequence's last block, or over the first 128 or 256 keys; under a mask that starts in the top left corner, over those of
/// these blocks that end before the queries' tile. Adds a finding for s_amax and for o_amax where one of these closes the gap
/// between what is expected and what was delivered: the share is 1 - |got - with padding| / (got - expected). An o_amax is too
/// large if it is beyond what was stored. Scores of 10^6 and more err by parts of 1 in FP32, so that nobody can tell which keys
/// padding weighs: there, o_amax is explained if it has the code of the largest output that the device left in padding.
void explain_padded_amax(const op::FindingRequest& request, const AttentionProblem& problem,
                         std::vector<op::Finding>& findings);

}  // namespace numcheck::reference
