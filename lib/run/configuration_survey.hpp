// Which cases show kernels that no other case shows: a plan of many shapes becomes one of few cases.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "plan/case.hpp"
#include "worker/workers.hpp"

namespace numcheck::run {

/// What the survey saw, and later what became of it.
struct ConfigurationCounts {
  std::size_t asked = 0;  ///< cases of "select": "new_configurations"
  std::size_t kept = 0;   ///< of those, cases that show a new configuration, or whose backend names none
  std::set<std::string> offered;
};

struct ConfigurationSurvey {
  std::vector<plan::Case> cases;                         ///< those to run, in plan order
  std::vector<std::vector<std::string>> configurations;  ///< parallel to cases: what each would run
  ConfigurationCounts counts;
};

/// Asks workers which kernel configurations each case of "select": "new_configurations" would run, and drops those that
/// show nothing new. Cases differ, whatever they run, in backend, mode, kind of inputs and environment. Unsupported
/// cases are kept to say so: one per reason. Cases whose question failed are all kept. Cases without "select" are kept
/// and not asked.
/// Throws core::EnvironmentError if no worker can start.
[[nodiscard]] ConfigurationSurvey survey_configurations(std::vector<plan::Case> cases, worker::WorkerOptions options);

}  // namespace numcheck::run
