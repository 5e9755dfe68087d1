// The gradient of attention's sinks.
#pragma once

#include "op/reference.hpp"
#include "reference/attention_gradient_sums.hpp"
#include "reference/attention_tile.hpp"

namespace numcheck::reference {

/// Output dsoftmax_offset, with the facts tolerance::OffsetFact; `dq` has what they need of the scores.
[[nodiscard]] op::OutputValues offset_gradient(const AttentionGradients& g, const GradientOutput& dq);

}  // namespace numcheck::reference
