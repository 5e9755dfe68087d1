// The gradient of attention's bias.
#pragma once

#include "op/reference.hpp"
#include "reference/attention_gradient_facts.hpp"
#include "reference/attention_tile.hpp"

namespace numcheck::reference {

/// Output dbias.
[[nodiscard]] op::OutputValues bias_gradient(const AttentionGradients& g, const StatisticFacts& statistics);

}  // namespace numcheck::reference
