// Products that are added to a tensor, and leave no trace in it.
#pragma once

#include <vector>

#include "op/reference.hpp"
#include "verdict/comparison.hpp"

namespace numcheck::verdict {

/// Of products with beta = 1 and an addend in the output's format, as when weights are updated in place: "updates lost", the share
/// of the output's numbers that are those of the addend, of those to which something other than 0 is added. An update below half a
/// step of the format is lost however often it is repeated; in FP32 it would add up. Of up to 2^16 elements; no gate, since rounding
/// to the format asks for it.
[[nodiscard]] std::vector<op::Finding> lost_updates(const EvaluationContext& context);

}  // namespace numcheck::verdict
