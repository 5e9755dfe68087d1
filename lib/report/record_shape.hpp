// Whether a case's record from a file has what the views and tables of a report read.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// What keeps `record` from being a case of report_schema(): "runs/0/device_s is missing"; empty if it is one. With a
/// record that passes, make_report, summarise, brief_report and the console view do not fail.
[[nodiscard]] std::string record_error(const nlohmann::json& record);

}  // namespace numcheck::report
