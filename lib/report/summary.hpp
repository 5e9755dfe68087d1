// Number of cases by status, and the resulting exit code.
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

/// What a run requires beyond "no case failed".
struct GatePolicy {
  bool strict = false;             ///< `inconclusive` fails
  bool require_supported = false;  ///< `unsupported` fails
  bool allow_empty = false;        ///< nothing verified is success
};

/// Exit code of an uninterrupted run from its summary:
///   1  any fail or xpass (or inconclusive if strict, unsupported if require_supported)
///   3  otherwise, any error, crashed or timeout
///   4  otherwise, nothing was verified: no pass, warn or xfail (unless allow_empty)
///   0  otherwise
[[nodiscard]] core::ExitCode exit_code_of(const nlohmann::json& summary, const GatePolicy& policy);

}  // namespace numcheck::report
