// Runs whose library takes shortcuts, and that say so.
#pragma once

#include "tolerance/judge.hpp"
#include "verdict/comparison.hpp"
#include "verdict/record.hpp"
#include "worker/execution.hpp"

namespace numcheck::verdict {

/// Judges an output that failed under `strict` once more, under the roundings that its run declares. If one of them, or
/// several together, explain everything that failed, and no finding of the output says that the bits are not there, the
/// result is right as the library computes it but less precise than the mode promises: `output` then holds the second
/// judgement, and a warning with the gate that broke. Otherwise nothing changes. Behind gelu, with slices, and in
/// outputs with fewer than 32 elements that tell, no finding speaks of bits: there the model decides.
void judge_declared_rounding(const EvaluationContext& context, const model::DeclaredRounding& declared,
                             const ComparedPort& compared, const tolerance::RunFacts& facts,
                             const model::ErrorModel& strict, OutputResult& output);

}  // namespace numcheck::verdict
