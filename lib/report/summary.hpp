// Number of cases by status, and the resulting exit code.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/error.hpp"
#include "verdict/record.hpp"

namespace numcheck::report {

/// Number of cases by status name, zeros included, and "cases", their total.
[[nodiscard]] nlohmann::json summarise(std::span<const nlohmann::json> cases);

/// What a run requires beyond "no case failed".
struct GatePolicy {
  std::set<verdict::Status> fail_on;  ///< fail the run as well; `fail` and `xpass` always do
  bool allow_empty = false;           ///< nothing verified is success
};

/// Exit code of an uninterrupted run from its summary:
///   1  any fail or xpass, or a status of fail_on
///   3  otherwise, any error, crashed or timeout
///   4  otherwise, nothing was verified: no pass or warn (unless allow_empty)
///   0  otherwise
[[nodiscard]] core::ExitCode exit_code_of(const nlohmann::json& summary, const GatePolicy& policy);

/// The statuses of fail_on that cases have, and how many, if only they make the exit code 1; nothing if a case failed.
[[nodiscard]] std::vector<std::pair<verdict::Status, std::size_t>> gated_by(const nlohmann::json& summary,
                                                                            const GatePolicy& policy);

}  // namespace numcheck::report
