// The amax of FP8 attention's output, where it is that of queries beyond the last one.
#pragma once

#include <cstdint>
#include <vector>

#include "op/reference.hpp"
#include "reference/attention_problem.hpp"

namespace numcheck::reference {

/// Libraries have been seen to count the queries of zeros with which they fill their last tile of 128: all scores of such a
/// query are 0, so it weighs the n keys that the mask shows to it alike, and its output is sum of v / (n + exp(sink)). Adds a
/// finding for o_amax if that closes the gap between the largest number of the output as it was delivered and the amax: the
/// share is 1 - |amax - such an output| / (amax - largest). Not where sequences have lengths (attention_padded_amax.hpp).
void explain_queries_beyond(const op::FindingRequest& request, const AttentionProblem& problem,
                            std::vector<op::Finding>& findings);

/// The largest |sum of v| / (n + exp(sink)) of any channel, over the first n = `keys` keys. The operands are codes.
[[nodiscard]] double largest_mean_of_values(const AttentionProblem& problem, std::int64_t batch, std::int64_t head,
                                            std::int64_t keys);

}  // namespace numcheck::reference
