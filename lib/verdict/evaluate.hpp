// From one algorithm's outputs to its result: comparison, gates, certificate.
#pragma once

#include <span>
#include <string>

#include "verdict/comparison.hpp"
#include "verdict/record.hpp"
#include "worker/execution.hpp"

namespace numcheck::verdict {

/// Waits for the references of the case's group, then compares and judges every output. Adds the seconds spent
/// comparing to `comparison_s`, and sets `context.last_pass`: expected_values() are then those that the run was judged by.
[[nodiscard]] RunResult evaluate_run(EvaluationContext& context, const worker::RunReport& run, double& comparison_s);

/// "d: G1 bound 9 > 1", the first gate that an output fails; empty if it fails none.
[[nodiscard]] std::string failure_of(const OutputResult& output);

/// Sets the case's status from its runs and outcome, then applies the known issues on this device that fit. If they explain
/// some of its failed outputs but not all, the reason is that of the first one that they leave.
void conclude(CaseResult& result, const worker::Outcome& outcome, std::span<const plan::XFail> known_issues,
              const std::string& today);

/// Notes the known issues on this device that have expired by `today`, of a case that has no outcome to apply them to;
/// conclude() notes those that it does not apply.
void note_expired(CaseResult& result, std::span<const plan::XFail> known_issues, const std::string& today);

}  // namespace numcheck::verdict
