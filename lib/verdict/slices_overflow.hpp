// Slices of k whose sums overflow in the output's format before they are added, though the product need not.
#pragma once

#include <string_view>
#include <vector>

#include "model/error_model.hpp"
#include "op/reference.hpp"
#include "tolerance/judge.hpp"
#include "verdict/comparison.hpp"

namespace numcheck::verdict {

/// Whether that explains every NaN and infinity of an FP16 product that is wrong, and every zero that relu may have made of one:
/// the sum of some range of k is beyond the format in each, in the direction that it takes. `model` is that of its slices; `zeros`:
/// some of what is wrong are numbers.
[[nodiscard]] bool slices_overflow(const EvaluationContext& context, const ComparedPort& compared,
                                   const tolerance::RunFacts& facts, const model::ErrorModel& model, int slices,
                                   bool zeros);

void add_slices_overflow(std::string_view port, int slices, bool zeros, std::vector<op::Finding>& findings);

}  // namespace numcheck::verdict
