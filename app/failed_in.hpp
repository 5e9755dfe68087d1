// --failed-in: the cases that made an earlier run fail.
#pragma once

#include <string>
#include <vector>

#include "plan/case.hpp"

namespace numcheck::app {

/// Keeps the cases that failed or broke in the report. The notes say which of those are not among the cases, and whether the
/// report is of a run that did not end. Throws core::UsageError if it is no report.
[[nodiscard]] std::vector<std::string> keep_failed(std::vector<plan::Case>& cases, const std::string& path);

}  // namespace numcheck::app
