// Checks that records from files have everything that views and tables read.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// Why `record` is not a case according to report_schema(), such as "runs/0/device_s is missing"; empty if it is one.
/// make_report, summarise, brief_report and the console view do not fail for a valid record.
[[nodiscard]] std::string record_error(const nlohmann::json& record);

/// Which member of one of the report's records is not of its type, such as "runs is not of type array"; empty if all are.
[[nodiscard]] std::string record_type_error(const nlohmann::json& report, const nlohmann::json& record);

/// Which member of a report, which has a list of cases, is not of its type, such as "cases/3/runs is not of type array"; empty
/// if all are. Members may be missing: reports of earlier minor versions lack some.
[[nodiscard]] std::string type_error(const nlohmann::json& report);

}  // namespace numcheck::report
