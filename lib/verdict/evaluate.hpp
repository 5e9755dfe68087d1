// From one algorithm's outputs to its result: comparison, gates, certificate.
#pragma once

#include <string>

#include "verdict/comparison.hpp"
#include "verdict/record.hpp"
#include "worker/execution.hpp"

namespace numcheck::verdict {

/// Waits for the references of the case's group, compares every output and judges. Adds the seconds spent comparing to
/// `comparison_s`.
[[nodiscard]] RunResult evaluate_run(const EvaluationContext& context, const worker::RunReport& run,
                                     double& comparison_s);

/// The case's status from its runs: fail, error, inconclusive or pass; then the plan's xfail.
void conclude(CaseResult& result, const worker::Outcome& outcome, const std::string& today);

}  // namespace numcheck::verdict
