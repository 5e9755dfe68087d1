// What differs between two runs besides their results.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// Program, plan, device, driver, library versions and variables that differ ("driver: 570.86.15 -> 580.65.06"), and
/// sentences about a run that was interrupted, a shard, or simulated.
[[nodiscard]] std::vector<std::string> settings_changes(const nlohmann::json& base, const nlohmann::json& now);

}  // namespace numcheck::report
