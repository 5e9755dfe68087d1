// Outputs that an op defines bit for bit: what numbers that compare equal may still have wrong.
#pragma once

#include <vector>

#include "tolerance/judge.hpp"
#include "verdict/comparison.hpp"

namespace numcheck::verdict {

/// Adds to the gate "exact" of such an output: where the op moves bits (op::Reference::moved), all elements with other bits
/// than their sources, NaN included; elsewhere zeros of the wrong sign.
void judge_bits(const EvaluationContext& context, const ComparedPort& compared, const metric::Statistics& statistics,
                std::vector<tolerance::Criterion>& criteria);

}  // namespace numcheck::verdict
