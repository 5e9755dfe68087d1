// Whether attention's dropout mask repeats itself.
#pragma once

#include <span>
#include <vector>

#include "op/attention_params.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// "repeated draws": the largest correlation (draw_correlation) of weights that are any number of heads, queries and keys
/// apart, of all heads or as many as there is room for; and of as many of their last queries and keys. Nothing if no query
/// sees a key there.
[[nodiscard]] std::vector<op::Finding> judge_repeats(const op::AttentionParams& p, std::span<const double> mask);

}  // namespace numcheck::reference
