// Facts about this program and this machine, for the report.
#pragma once

#include <string>
#include <vector>

#include "report/report.hpp"

namespace numcheck::app {

/// Tool, host and environment; the run fills in plan, device, libraries and times.
[[nodiscard]] report::RunFacts own_facts(const std::vector<std::string>& argv);

/// "0.1.0 (a1b2c3d, changed)"
[[nodiscard]] std::string version_text(const report::ToolFacts& tool);

/// The host's name for itself.
[[nodiscard]] std::string host_name();

/// Now, as "2025-01-31T12:00:00Z".
[[nodiscard]] std::string utc_now();

/// Now, as "20250131-120000", for names of folders.
[[nodiscard]] std::string utc_stamp();

}  // namespace numcheck::app
