// From decoded case objects to cases.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/case.hpp"
#include "plan/case_spec.hpp"
#include "plan/plan.hpp"
#include "plan/reporter.hpp"

namespace numcheck::plan {

/// Reports a plan of more cases than limits.max_cases, or than limits.case_memory_bytes can hold, counted as products
/// of the axes before `exclude`. Nothing may be expanded after a report.
void check_case_count(const std::vector<CaseSpec>& specs, const Limits& limits, Reporter& reporter);

/// All cases in plan order: objects in order, axes nested as in axes_of with the last one fastest. Reports combinations
/// that the op rejects, ports that no case has and cases that contradict each other; repeated cases are dropped with a
/// warning.
[[nodiscard]] std::vector<Case> expand(const std::vector<CaseSpec>& specs, std::uint64_t plan_seed, Reporter& reporter);

}  // namespace numcheck::plan
