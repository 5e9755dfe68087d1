// Options of commands whose exit code is a gate: run and merge.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli_forward.hpp"
#include "core/error.hpp"
#include "report/summary.hpp"

namespace numcheck::app {

struct Context;

struct GateOptions {
  std::vector<std::string> fail_on;  ///< statuses, as lists
  bool strict = false;
  bool require_supported = false;
  bool require_run = false;
  bool allow_empty = false;

  /// Throws core::UsageError if a word of --fail-on is not a status that can fail a run.
  [[nodiscard]] report::GatePolicy policy() const;
};

void add_gate_options(CLI::App& cli, GateOptions& options);

/// The exit code that a report leads to: a broken contract fails, too. Says so on stderr if only --fail-on makes it 1, and
/// loudly if a budget left cases out that it is not about.
[[nodiscard]] core::ExitCode gate(Context& context, const nlohmann::json& report, const report::GatePolicy& policy);

}  // namespace numcheck::app
