// The members of a case's record and of its runs, object by object; used by record_json.cpp and report_schema.cpp.
#pragma once

#include <vector>

#include "report/members.hpp"
#include "verdict/record.hpp"

namespace numcheck::report {

/// A run with its case's ports, and whether the plan has its own predicate.
struct RunSource {
  const verdict::RunResult* result;
  const std::vector<op::Port>* ports;
  const plan::ToleranceSpec* plan;  ///< if the plan has an allclose of its own
};

[[nodiscard]] const Members<RunSource>& run_members();

/// Their rule, with what only runs with a planted fault have.
[[nodiscard]] nlohmann::json run_rule();
/// In addition to those of the case itself (plan::case_to_json).
[[nodiscard]] const Members<verdict::CaseResult>& case_members();
[[nodiscard]] const Members<prepare::StageTimes>& stage_members();

}  // namespace numcheck::report
