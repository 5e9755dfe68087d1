// Checks that a case's record from a file has everything that views and tables read.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// Why `record` is not a case according to report_schema(), such as "runs/0/device_s is missing"; empty if it is one.
/// make_report, summarise, brief_report and the console view do not fail for a valid record.
[[nodiscard]] std::string record_error(const nlohmann::json& record);

}  // namespace numcheck::report
