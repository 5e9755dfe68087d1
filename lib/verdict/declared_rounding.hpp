// Runs whose library declares that it takes shortcuts.
#pragma once

#include "tolerance/judge.hpp"
#include "verdict/comparison.hpp"
#include "verdict/record.hpp"
#include "worker/execution.hpp"

namespace numcheck::verdict {

/// Judges an output that failed under `strict` again, allowing the roundings that its run declares. If one of them, or
/// a combination, explains all failures, and the bits of a product show it (op::Reference::replay), the result is correct
/// for the way the library computes it, but less precise than the mode promises: `output` then holds the second judgement
/// and a warning with the gate that failed. If too few elements could show it, `output` holds the second judgement and a doubt. Otherwise it keeps what it has. What the bits show, or what would fail even so,
/// becomes a finding. No bits are predicted for attention, whose model is made again with all roundings that the run
/// declares and that matter to the output.
void judge_declared_rounding(const EvaluationContext& context, const worker::RunReport& run,
                             const ComparedPort& compared, const tolerance::RunFacts& facts,
                             const model::ErrorModel& strict, OutputResult& output);

}  // namespace numcheck::verdict
