// How many cases ended how, and the exit code that follows.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/error.hpp"
#include "verdict/record.hpp"

namespace numcheck::report {

/// Number of cases by status name, zeros included, and "cases", their total.
[[nodiscard]] nlohmann::json summarise(std::span<const nlohmann::json> cases);

/// What a run promises beyond "no case failed".
struct GatePolicy {
  bool strict = false;             ///< `inconclusive` fails
  bool require_supported = false;  ///< `unsupported` fails
  bool allow_empty = false;        ///< nothing verified is success
};

/// Exit code of an uninterrupted run from its summary:
///   1  some fail or xpass (or inconclusive under strict, unsupported under require_supported)
///   3  else some error, crashed or timeout
///   4  else nothing was verified: no pass, warn or xfail
///   0  else
[[nodiscard]] core::ExitCode exit_code_of(const nlohmann::json& summary, const GatePolicy& policy);

}  // namespace numcheck::report
