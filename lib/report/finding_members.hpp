// The record's members that an op's own statistics, and causes of a failure, have.
#pragma once

#include <span>

#include <nlohmann/json_fwd.hpp>

#include "op/reference.hpp"

namespace numcheck::report {

[[nodiscard]] nlohmann::json findings_json(std::span<const op::Finding> findings);
/// Of one finding.
[[nodiscard]] nlohmann::json finding_rule();

}  // namespace numcheck::report
