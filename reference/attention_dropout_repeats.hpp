// Whether attention's dropout mask repeats itself.
#pragma once

#include <span>
#include <vector>

#include "op/attention_params.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// "repeated draws": the largest correlation (draw_correlation) of weights that are any number of heads, queries and keys
/// apart; heads of one sequence follow those of the one before. Of masks with more than kMostCorrelatedDraws weights four parts
/// are taken, with the last queries of each sequence and the last keys that these see: one with some heads, queries and keys, and one each with as many heads, queries or keys as possible.
/// Nothing if no query sees a key there.
[[nodiscard]] std::vector<op::Finding> judge_repeats(const op::AttentionParams& p, std::span<const double> mask,
                                                     double one_in);

}  // namespace numcheck::reference
