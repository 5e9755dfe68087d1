// The members of an output's record, object by object; used by record_members.cpp and report_schema.cpp.
#pragma once

#include "report/members.hpp"
#include "verdict/record.hpp"

namespace numcheck::report {

/// An output with its port, and whether the plan has its own predicate.
struct OutputSource {
  const verdict::OutputResult* output;
  const op::Port* port;
  const plan::ToleranceSpec* plan;  ///< if the plan has limits of its own
};

/// [row, col], or [batch, row, col] if there are several matrices.
[[nodiscard]] nlohmann::json position(std::int64_t flat, const op::Port& port);

/// An output's object and its schema; some members are there only if they say something.
[[nodiscard]] nlohmann::json output_json(const OutputSource& source);
[[nodiscard]] nlohmann::json output_rule();

}  // namespace numcheck::report
