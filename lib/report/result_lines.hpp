// The lines of `run --jsonl`: what a report has, as it becomes known.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/report.hpp"

namespace numcheck::report {

/// {"header": {...}}: the report's members that are known before the first case ends.
[[nodiscard]] nlohmann::json header_line(const RunFacts& facts);

/// {"case": {...}}: the case as it stands in report.json.
[[nodiscard]] nlohmann::json case_line(const nlohmann::json& record);

/// {"summary": {...}}: the report's members that are known only at the end, without its tables.
[[nodiscard]] nlohmann::json summary_line(const nlohmann::json& report);

/// Schema of any of these lines, from the properties of a report.
[[nodiscard]] nlohmann::json line_rule(const nlohmann::json& report_properties);

}  // namespace numcheck::report
