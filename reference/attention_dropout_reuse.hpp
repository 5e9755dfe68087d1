// Whether several weights of attention share one draw of their dropout mask.
#pragma once

#include <span>
#include <vector>

#include "op/attention_params.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// Adds the cause "each draw of the mask is used for n queries that are m apart" (or keys) to the findings about a mask
/// with repeated or copied draws, if all such weights are equal in it, which independent draws are once in 10^3 masks
/// at most, given how many are dropped, and if the draws are right when each is counted once (judge_draws, with limits
/// that one right mask in 10^4 exceeds). n is 2, 4 or 8, m a power of two up to 64; the queries that share a draw lie
/// in n m consecutive ones, the first of which is a multiple of n m. Of several n and m those count for which the mask
/// speaks most, and those for which it speaks less if that may be chance: more than one if the sequences are short.
void explain_reuse(const op::AttentionParams& p, std::span<const double> mask, std::vector<op::Finding>& findings);

}  // namespace numcheck::reference
