// The console's failures and warnings: of each kind one case in full.
#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "report/failure_groups.hpp"
#include "report/report.hpp"
#include "report/views/console.hpp"
#include "report/views/console_format.hpp"
#include "report/views/console_output.hpp"
#include "report/views/text_table.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

constexpr std::size_t kKindsShown = 10;  // the report has all of them
constexpr std::size_t kOthersShown = 5;  // of the same kind, by digest
constexpr std::size_t kMaxWhat = 120;    // characters

/// The first run that ended as the case did in full, and how many others there are: a failed one of known failures, and of cases
/// that did not end by themselves.
std::string run_lines(const json& runs, const std::string& status) {
  const auto status_of = [](const json& run) -> std::string { return run.at("status"); };
  const std::string ended = std::ranges::find(runs, status, status_of) != runs.end() ? status : "fail";
  const auto is_alike = [&](const json& run) { return status_of(run) == ended; };
  const auto first = std::ranges::find_if(runs, is_alike);
  if (first == runs.end()) {
    return "";
  }
  const json& run = *first;
  std::string text;
  if (const auto implementation = run.at("implementation").get<std::string>(); !implementation.empty()) {
    const auto alike = std::ranges::count_if(runs, is_alike);
    text += "      " + implementation;
    text += runs.size() > 1 ? fmt::format("  ({} of {} algorithms {}{})\n", alike, runs.size(),
                                          status == "warn" ? "warn" : "fail", alike == 1 ? "s" : "")
                            : "\n";
  }
  std::string outputs;
  for (const auto& [port, output] : run.at("outputs").items()) {
    outputs += output_lines(port, output);
  }
  if (const auto detail = run.at("guards").at("detail").get<std::string>(); !detail.empty()) {
    outputs += "      guards: " + detail + "\n";
  }
  const auto failing = run.at("failing").get<std::string>();
  return text + (outputs.empty() && !failing.empty() ? "      " + failing + "\n" : outputs);
}

std::string case_lines(const json& record, const std::string& digest, bool colour) {
  const auto status = record.at("status").get<std::string>(), reason = record.at("reason").get<std::string>();
  const std::string runs = run_lines(record.at("runs"), status);
  std::string text = paint(upper(status), status_colour(status), colour) +
                     fmt::format("  {}   #{}\n", record.at("id").get<std::string>(), digest);
  if (!reason.empty() && (runs.empty() || status != "fail")) {
    text += "      " + reason + "\n";
  }
  text += runs;
  if (record.contains("reproduce")) {
    text += "      run again: " + record.at("reproduce").get<std::string>() + "\n";
  }
  return text;
}

/// The first case of the group in full, and the digests of the next ones.
std::string group_lines(const CaseGroup& group, const json& cases, const std::vector<std::string>& names, bool colour) {
  const std::size_t size = group.cases.size();
  const std::size_t first = group.cases.front();
  if (size == 1) {
    return case_lines(cases[first], names[first], colour);
  }
  std::string text =
      paint(fmt::format("{} {}: {}", size, group.status, cut_middle(group.what, kMaxWhat)), Colour::bold, colour) +
      "\n" + case_lines(cases[first], names[first], colour) + "      and";
  for (std::size_t i = 1; i < std::min(size, kOthersShown + 1); ++i) {
    text += " #" + names[group.cases[i]];
  }
  return text + (size > kOthersShown + 1 ? fmt::format(" and {} more\n", size - kOthersShown - 1) : "\n");
}

std::string all_groups(const std::vector<CaseGroup>& groups, const json& report, const ConsoleOptions& options,
                       std::string_view noun) {
  const json& cases = report.at("cases");
  const std::vector<std::string> names = groups.empty() ? std::vector<std::string>() : digests_of(cases);
  std::string text;
  for (std::size_t i = 0; i < std::min(groups.size(), kKindsShown); ++i) {
    text += group_lines(groups[i], cases, names, options.colour);
  }
  if (groups.size() > kKindsShown) {
    std::size_t hidden = 0;
    for (std::size_t i = kKindsShown; i < groups.size(); ++i) {
      hidden += groups[i].cases.size();
    }
    text += fmt::format("the report has {} more {}{} of other kinds\n", hidden, noun, hidden == 1 ? "" : "s");
  }
  return text;
}

}  // namespace

std::string render_failures(const json& report, const ConsoleOptions& options) {
  return all_groups(failure_groups(report.at("cases")), report, options, "failure");
}

std::string render_warnings(const json& report, const ConsoleOptions& options) {
  return all_groups(warning_groups(report.at("cases")), report, options, "warning");
}

}  // namespace numcheck::report::views
