// The case that a record of a report is of.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plan/case.hpp"

namespace numcheck::app {

/// Of a case as JSON, or of a record of a report, whose measurements are left out. Throws plan::PlanError for what is not a
/// case.
[[nodiscard]] plan::Case case_of_record(nlohmann::json record);

}  // namespace numcheck::app
