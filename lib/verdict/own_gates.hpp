// The op's own gates, and what the op says about why an output failed.
#pragma once

#include <vector>

#include "op/op.hpp"
#include "op/reference.hpp"
#include "tolerance/judge.hpp"
#include "verdict/comparison.hpp"
#include "verdict/record.hpp"

namespace numcheck::verdict {

/// True of a gate that numbers failed, not the run's conduct.
[[nodiscard]] bool has_wrong_numbers(const tolerance::Criterion& criterion);

/// Findings that may explain why an output failed.
[[nodiscard]] std::vector<op::Finding> diagnosis_of(const EvaluationContext& context, const op::Port& port);

/// Elements of the run's unpredictable outputs that no draw could have left.
[[nodiscard]] std::vector<op::ImpossibleDraw> impossible_draws(const EvaluationContext& context);

/// Adds the op's own statistics about the run: those with a limit become gates of their output, others findings. Outputs that fail
/// only these are diagnosed here.
/// Throws core::InternalError if a finding names an output or a gate that the op does not have.
void judge_by_own_gates(const EvaluationContext& context, RunResult& result);

}  // namespace numcheck::verdict
