#include "gate_options.hpp"

#include <algorithm>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "annotations.hpp"
#include "arguments.hpp"
#include "command.hpp"
#include "core/counted.hpp"
#include "core/strings.hpp"
#include "report/contract.hpp"
#include "report/number.hpp"

namespace numcheck::app {
namespace {

/// All statuses but `pass`.
std::vector<std::string_view> fail_on_words() {
  std::vector<std::string_view> words;
  for (const verdict::Status status : verdict::all_statuses()) {
    if (status != verdict::Status::pass) {
      words.emplace_back(verdict::status_name(status));
    }
  }
  return words;
}

/// "1067 of 1107 cases skipped: the budget of 20 s was used up; exit code 0 is about the rest", unless another gate
/// is about them.
void say_what_the_budget_left(Context& context, const nlohmann::json& report, const report::GatePolicy& policy,
                              core::ExitCode code) {
  const auto budget = report.find("budget");
  const std::size_t left = budget == report.end() ? 0 : budget->at("not_started").get<std::size_t>();
  if (left == 0) {
    return;
  }
  const std::string text =
      fmt::format("{} of {} skipped: the budget of {} s was used up{}", left,
                  core::counted(report.at("summary").at("cases").get<double>(), "case"),
                  core::shortest(report::number_value(budget->at("limit_s"))),
                  report::breaks_contract(report) || policy.fail_on.contains(verdict::Status::skipped)
                      ? ""
                      : fmt::format("; exit code {} is about the rest", static_cast<int>(code)));
  context.terminal.err(text + "\n");
  context.terminal.annotate(annotation(text));
}

void annotate_contract(Context& context, const nlohmann::json& report) {
  if (!report::breaks_contract(report)) {
    return;
  }
  constexpr std::size_t kShown = 10;
  const nlohmann::json& contract = report.at("contract");
  const nlohmann::json& broken = contract.at("broken");
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < std::min(kShown, broken.size()); ++i) {
    const nlohmann::json& promise = broken[i];
    notes.push_back(fmt::format("{}  {}: {}", promise.at("status").get<std::string>(),
                                promise.at("id").get<std::string>(), promise.at("reason").get<std::string>()));
  }
  if (broken.size() > kShown) {
    notes.push_back(fmt::format("and {} more", broken.size() - kShown));
  }
  context.terminal.annotate(annotation(fmt::format("contract broken: {} of {} promised cases did not run",
                                                   broken.size(), contract.at("promised").get<std::size_t>()),
                                       notes));
}

}  // namespace

void add_gate_options(CLI::App& cli, GateOptions& options) {
  const char* group = "Gates";
  cli.add_option("--fail-on", options.fail_on,
                 "cases with these statuses fail the run as well, comma-separated: warn, inconclusive, unsupported, "
                 "skipped, xfail, error, crashed, timeout")
      ->type_name("LIST")
      ->allow_extra_args(false)
      ->group(group);
  cli.add_flag("--strict", options.strict, "the same as --fail-on inconclusive")->group(group);
  cli.add_flag("--require-supported", options.require_supported, "the same as --fail-on unsupported")->group(group);
  cli.add_flag("--require-run", options.require_run, "the same as --fail-on skipped")->group(group);
  cli.add_flag("--allow-empty", options.allow_empty, "exit 0 even if nothing was verified")->group(group);
}

report::GatePolicy GateOptions::policy() const {
  report::GatePolicy policy{.fail_on = {}, .allow_empty = allow_empty};
  for (const std::string& word : split_lists(fail_on, "--fail-on")) {
    require_known(word, "status of --fail-on", fail_on_words());
    policy.fail_on.insert(*verdict::parse_status(word));
  }
  if (strict) {
    policy.fail_on.insert(verdict::Status::inconclusive);
  }
  if (require_supported) {
    policy.fail_on.insert(verdict::Status::unsupported);
  }
  if (require_run) {
    policy.fail_on.insert(verdict::Status::skipped);
  }
  return policy;
}

core::ExitCode gate(Context& context, const nlohmann::json& report, const report::GatePolicy& policy) {
  const nlohmann::json& summary = report.at("summary");
  std::vector<std::string> counts, words;
  for (const auto& [status, count] : report::gated_by(summary, policy)) {
    counts.push_back(fmt::format("{} {}", count, verdict::status_name(status)));
    words.emplace_back(verdict::status_name(status));
  }
  if (!counts.empty()) {
    const std::string text = fmt::format("no case failed, but --fail-on {} makes the exit code 1: {}",
                                         fmt::join(words, ","), fmt::join(counts, ", "));
    context.terminal.err(text + "\n");
    context.terminal.annotate(annotation(text));
  }
  const core::ExitCode code =
      report::breaks_contract(report) ? core::ExitCode::numerics_differ : report::exit_code_of(summary, policy);
  annotate_contract(context, report);
  say_what_the_budget_left(context, report, policy, code);
  return code;
}

}  // namespace numcheck::app
