// From one algorithm's outputs to its result: comparison, gates, certificate.
#pragma once

#include <string>

#include "report/record.hpp"
#include "run/comparison.hpp"
#include "run/execution.hpp"

namespace numcheck::run {

/// Waits for the references of the case's group, compares every output and judges. Adds the seconds spent comparing to
/// `comparison_s`.
[[nodiscard]] report::RunResult evaluate_run(const EvaluationContext& context, const RunReport& run,
                                             double& comparison_s);

/// The case's status from its runs: fail, error, inconclusive or pass; then the plan's xfail.
void conclude(report::CaseResult& result, const Outcome& outcome, const std::string& today);

}  // namespace numcheck::run
