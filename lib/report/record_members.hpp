// What a case's record is made of, object by object; record_json.cpp writes it and report_schema.cpp describes it.
#pragma once

#include <vector>

#include "report/members.hpp"
#include "verdict/record.hpp"

namespace numcheck::report {

/// An output with its port, and whether the plan has a predicate of its own.
struct OutputSource {
  const verdict::OutputResult* output;
  const op::Port* port;
  bool has_plan_predicate;
};

/// A run with what its case says of its outputs.
struct RunSource {
  const verdict::RunResult* result;
  const std::vector<op::Port>* ports;
  bool has_plan_predicate;
};

[[nodiscard]] const Members<metric::ErrorNorms>& norm_members();
/// Those of the arithmetic error's norms come with it.
[[nodiscard]] const Members<metric::Statistics>& statistics_members();
[[nodiscard]] const Members<OutputSource>& output_members();
[[nodiscard]] const Members<RunSource>& run_members();
/// Beside the case itself (plan::case_to_json).
[[nodiscard]] const Members<verdict::CaseResult>& case_members();
[[nodiscard]] const Members<prepare::StageTimes>& stage_members();

}  // namespace numcheck::report
