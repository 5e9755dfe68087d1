// Whether several weights of attention share one draw of their dropout mask.
#pragma once

#include <span>
#include <vector>

#include "op/attention_params.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// Adds the cause "each draw of the mask is used for n queries that are m apart" (or keys) to the findings about a mask that
/// failed a gate, if all such weights are equal in it, which independent draws are once in 10^3 masks at most, and if the
/// draws are judged right when each is counted once (judge_draws). n is 2, 4 or 8, the smallest that explains most weights;
/// m is a power of two up to 64; the queries that share a draw lie in n m consecutive ones, the first of which is a
/// multiple of n m.
void explain_reuse(const op::AttentionParams& p, std::span<const double> mask, std::vector<op::Finding>& findings);

}  // namespace numcheck::reference
