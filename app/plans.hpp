// Plans as commands load them.
#pragma once

#include <string>
#include <vector>

#include "cli_forward.hpp"
#include "plan/plan.hpp"

namespace numcheck::app {

struct Context;
class Terminal;

struct PlanOptions {
  std::vector<std::string> paths;
  std::string max_cases;
  std::vector<std::string> known_issues;  ///< files
  bool sandbox = false;
  bool reports_known_issues = false;  ///< warn of entries that expire, name those that match no case
};

void add_plan_options(CLI::App& cli, PlanOptions& options);

/// Whether a word is what a plan is named by: a shipped plan's name, or the path of a file.
[[nodiscard]] bool names_plan(const std::string& word);

/// All plans as one, in the order of the command line: names are joined with "+", a case that several plans have is
/// kept once; then come the known issues that the options name. A relative path that does not exist is looked up in the
/// installation (share/te-numcheck), with a note on stderr. Warnings are printed. Throws core::UsageError if no path was
/// given or no plan has that name, plan::PlanError with all mistakes of the first file that has any.
[[nodiscard]] plan::Plan load_plans(Context& context, const PlanOptions& options, std::string_view command);

/// Prints diagnostics for people, and under GitHub Actions also as annotations.
void print_diagnostics(Terminal& terminal, const std::vector<plan::Diagnostic>& diagnostics);

}  // namespace numcheck::app
