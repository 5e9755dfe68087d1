// The gradient of attention's bias.
#pragma once

#include <span>

#include "op/reference.hpp"
#include "reference/attention_tile.hpp"

namespace numcheck::reference {

/// Output dbias; `statistics` is GradientFact::statistic_square of dq.
[[nodiscard]] op::OutputValues bias_gradient(const AttentionGradients& g, std::span<const float> statistics);

}  // namespace numcheck::reference
