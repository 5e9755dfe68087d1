#include "report/views/comparison_views.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/counted.hpp"
#include "core/printable.hpp"
#include "report/number.hpp"
#include "report/report.hpp"
#include "report/views/markdown_text.hpp"
#include "report/views/text_table.hpp"

namespace numcheck::report::views {
namespace {

constexpr std::size_t kShownChanges = 20;

std::string ratio_of(double ratio) {
  return std::isnan(ratio) ? "-" : ratio_text(number(ratio));
}

/// "pass -> fail", "not there -> pass".
std::string statuses_of(const CaseChange& change) {
  const auto name = [](const std::string& status) { return status.empty() ? std::string("not there") : status; };
  return change.base_status == change.new_status
             ? change.new_status
             : fmt::format("{} -> {}", name(change.base_status), name(change.new_status));
}

/// All changes but identical cases: regressions first, then in the order of Change.
std::vector<const CaseChange*> shown_changes(const Comparison& comparison) {
  std::vector<const CaseChange*> changes;
  for (const CaseChange& change : comparison.cases) {
    if (change.change != Change::identical) {
      changes.push_back(&change);
    }
  }
  std::ranges::stable_sort(changes, {},
                           [](const CaseChange* change) { return std::pair(change->gates ? 0 : 1, change->change); });
  return changes;
}

std::vector<std::string> digests_of(const std::vector<const CaseChange*>& changes) {
  std::vector<std::string> digests;
  for (const CaseChange* change : changes) {
    digests.push_back(change->digest);
  }
  return short_digests(digests);
}

std::string regression_text(const CaseChange& change, const std::string& digest, const ConsoleOptions& options) {
  std::string name(change_name(change.change));
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  std::string text = fmt::format("{}  {}   #{}\n      {}", paint(name, Colour::red, options.colour),
                                 core::printable(change.id), digest, statuses_of(change));
  if (!change.reason.empty()) {
    text += ": " + core::printable(change.reason);
  }
  if (!std::isnan(change.base_ratio) && !std::isnan(change.new_ratio)) {
    text += fmt::format("\n      error/limit {} -> {}", ratio_of(change.base_ratio), ratio_of(change.new_ratio));
  }
  if (!change.implementation.empty()) {
    text += "\n      " + core::printable(change.implementation);
  }
  return text + "\n";
}

const std::string& why(const CaseChange& change) {
  return change.implementation.empty() ? change.reason : change.implementation;
}

std::string markdown_row(const CaseChange& change, const std::string& digest) {
  return fmt::format("| {}{}{} | {} #{} | {} | {} → {} | {} | {} |\n", change.gates ? "**" : "",
                     change_name(change.change), change.gates ? "**" : "", markdown_text(change.id), digest,
                     statuses_of(change), ratio_of(change.base_ratio), ratio_of(change.new_ratio),
                     markdown_text(fmt::format("{}", fmt::join(change.outputs, " "))), markdown_text(why(change)));
}

}  // namespace

std::string render_comparison(const Comparison& comparison, const ConsoleOptions& options) {
  std::string text = comparison.sentence() + "\n";
  if (options.verbosity < 0) {
    return text;
  }
  for (const std::string& setting : comparison.settings) {
    text += core::printable(setting) + "\n";
  }
  const std::vector<const CaseChange*> changes = shown_changes(comparison);
  const std::vector<std::string> digests = digests_of(changes);
  const std::size_t limit = options.verbosity > 0 ? changes.size() : kShownChanges;
  const auto regressions = static_cast<std::size_t>(std::ranges::count(changes, true, &CaseChange::gates));
  for (std::size_t i = 0; i < std::min(regressions, limit); ++i) {
    text += (i == 0 ? "\n" : "") + regression_text(*changes[i], digests[i], options);
  }
  std::vector<std::vector<Cell>> rows;
  for (std::size_t i = regressions; i < std::min(changes.size(), regressions + limit); ++i) {
    const CaseChange& change = *changes[i];
    rows.push_back({{std::string(change_name(change.change))},
                    {change.id},
                    {statuses_of(change)},
                    {ratio_of(change.base_ratio)},
                    {ratio_of(change.new_ratio)},
                    {fmt::format("{}", fmt::join(change.outputs, " "))},
                    {why(change)}});
  }
  if (!rows.empty()) {
    text += "\n" + render_table({{"change"},
                                 {"case", false, true},
                                 {"status"},
                                 {"base", true},
                                 {"new", true},
                                 {"outputs"},
                                 {"implementation or reason"}},
                                rows, options.width, options.colour);
  }
  const std::size_t shown = std::min(regressions, limit) + rows.size();
  if (shown < changes.size()) {
    text +=
        fmt::format("{}: -v shows all\n", core::counted(static_cast<double>(changes.size() - shown), "more change"));
  }
  return text;
}

std::string comparison_markdown(const Comparison& comparison) {
  std::string text = fmt::format("### te-numcheck: {}\n\n", comparison.sentence());
  for (const std::string& setting : comparison.settings) {
    text += "- " + markdown_text(setting) + "\n";
  }
  const std::vector<const CaseChange*> changes = shown_changes(comparison);
  const std::vector<std::string> digests = digests_of(changes);
  if (!changes.empty()) {
    text +=
        "\n| change | case | status | error/limit | changed outputs | implementation or reason |\n"
        "|---|---|---|---|---|---|\n";
  }
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const std::string row = markdown_row(*changes[i], digests[i]);
    if (text.size() + row.size() > kMaxMarkdown) {
      return text +
             fmt::format("\nLeft out: {}.\n", core::counted(static_cast<double>(changes.size() - i), "more change"));
    }
    text += row;
  }
  return text;
}

}  // namespace numcheck::report::views
