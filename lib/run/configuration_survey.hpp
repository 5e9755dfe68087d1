// Which cases show kernels that no other case shows: a plan of many shapes becomes one of few cases.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "plan/case.hpp"
#include "run/pipeline.hpp"
#include "worker/workers.hpp"

namespace numcheck::run {

/// What the survey saw, and later what became of it.
struct ConfigurationCounts {
  std::size_t asked = 0;  ///< cases of "select": "new_configurations"
  std::size_t kept = 0;   ///< of those, cases that show a new configuration, or whose backend names none
  std::set<std::string> offered;
};

/// What cases would run, by digest.
using ConfigurationsOfCases = std::map<core::Digest, std::vector<std::string>>;

struct ConfigurationSurvey {
  std::vector<plan::Case> cases;  ///< those to run, in plan order
  ConfigurationsOfCases configurations;
  ConfigurationCounts counts;
};

/// Asks workers which kernel configurations each case of "select": "new_configurations" would run, and drops those that
/// show nothing new. Cases differ, whatever they run, in backend, mode, kind of inputs and environment. Unsupported
/// cases are kept to say so: one per reason. Cases whose question failed are all kept. Cases without "select" are kept
/// and not asked.
/// Throws core::EnvironmentError if no worker can start. `interrupted` is asked about twice in a tenth of a second and
/// may be empty; once it is not 0, the survey ends without the cases that have no answer yet.
[[nodiscard]] ConfigurationSurvey survey_configurations(std::vector<plan::Case> cases, worker::WorkerOptions options,
                                                        const std::function<int()>& interrupted = {});

/// The configurations that the judged ones of these cases have run; `results` is parallel to `cases`.
[[nodiscard]] std::set<std::string> verified_configurations(const ConfigurationsOfCases& configurations,
                                                            std::span<const plan::Case> cases,
                                                            std::span<const FinishedCase> results);

}  // namespace numcheck::run
