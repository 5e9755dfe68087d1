// Markdown for a pull request or a step summary: failures first, then a table of ops, modes and backends.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/counted.hpp"
#include "core/printable.hpp"
#include "report/case_facts.hpp"
#include "report/contract.hpp"
#include "report/number.hpp"
#include "report/report.hpp"
#include "report/views/markdown_text.hpp"
#include "report/views/not_told.hpp"
#include "report/views/views.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

/// Cases of one op, mode and backend.
struct Group {
  std::string op, mode, backend;
  std::array<std::size_t, 4> counts{};    ///< by Outcome
  std::size_t unproven = 0, excused = 0;  ///< inconclusive and xfail: neither passed nor not run
  double worst = std::nan("");
  std::string at;  ///< the case with that ratio
};

std::string row_of(const Group& group) {
  const auto count = [&group](Outcome outcome) { return group.counts.at(static_cast<std::size_t>(outcome)); };
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", markdown_text(group.op),
                     markdown_text(group.mode), markdown_text(group.backend), count(Outcome::passed) - group.unproven,
                     count(Outcome::failed), count(Outcome::broken), group.unproven + group.excused,
                     count(Outcome::skipped) - group.excused,
                     std::isnan(group.worst) ? "" : ratio_text(number(group.worst)), markdown_text(group.at));
}

std::vector<Group> groups_of(const std::vector<CaseFacts>& cases) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> places;
  for (const CaseFacts& facts : cases) {
    const auto [place, is_new] = places.try_emplace(facts.op + "/" + facts.mode + "/" + facts.backend, groups.size());
    if (is_new) {
      groups.push_back({.op = facts.op, .mode = facts.mode, .backend = facts.backend, .at = {}});
    }
    Group& group = groups[place->second];
    ++group.counts.at(static_cast<std::size_t>(outcome_of(facts.status)));
    group.unproven += facts.status == "inconclusive" ? 1 : 0;
    group.excused += facts.status == "xfail" ? 1 : 0;
    if (!std::isnan(facts.ratio) && !(facts.ratio <= group.worst)) {
      group.worst = facts.ratio;
      group.at = facts.id;
    }
  }
  return groups;
}

/// "345 pass, 6 fail".
std::string counts_of(const std::vector<CaseFacts>& cases) {
  std::map<std::string, std::size_t> counts;
  for (const CaseFacts& facts : cases) {
    ++counts[facts.status];
  }
  std::string text;
  for (const char* status : {"fail", "xpass", "error", "crashed", "timeout", "pass", "warn", "inconclusive", "xfail",
                             "unsupported", "skipped"}) {
    if (counts[status] > 0) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[status], status);
    }
  }
  return text.empty() ? "no cases" : text;
}

/// Statuses of cases that fail the run only because --fail-on names them.
std::set<std::string> failed_on_request(const json& report) {
  std::set<std::string> statuses;
  for (const json& status : report.value("gates", json::object()).value("fail_on", json::array())) {
    const auto& name = status.get_ref<const std::string&>();
    if (report.at("summary").value(name, 0) > 0) {
      statuses.insert(name);
    }
  }
  return statuses;
}

/// What fails the run besides cases, for the title, as "9 pass" alone would mislead: "contract broken, ".
std::string gates_of(const json& report) {
  std::string text = breaks_contract(report) ? "contract broken, " : "";
  text += failed_on_request(report).empty() ? "" : "not as required, ";
  if (const auto comparison = report.find("comparison"); comparison != report.end()) {
    const auto regressions = comparison->at("summary").at("regressions").get<std::size_t>();
    text += regressions == 0 ? "" : core::counted(static_cast<double>(regressions), "regression") + ", ";
  }
  return text;
}

/// What NVIDIA_TF32_OVERRIDE did; each sentence says where it is a prediction.
void add_override(const json& report, std::string& text) {
  constexpr std::size_t kShown = 20;
  const json sentences = report.value("override_effect", json::object()).value("sentences", json::array());
  text += sentences.empty() ? "" : "\n**NVIDIA\\_TF32\\_OVERRIDE**\n\n";
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    const std::string line = fmt::format("- {}\n", markdown_text(sentences[i].get<std::string>()));
    if (i == kShown || text.size() + line.size() > kMaxMarkdown / 4 * 3) {
      text += fmt::format("- {} more are left out.\n", sentences.size() - i);
      return;
    }
    text += line;
  }
}

/// Mistakes in formulas that the inputs do not show, as the console has them.
void add_not_told(const json& report, std::string& text) {
  constexpr std::size_t kShown = 20;
  const auto counts = not_told_counts(report);
  text += counts.empty() ? "" : "\n**What these inputs do not show**\n\n";
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::string line = fmt::format("- {} {}\n", counts[i].first, markdown_text(counts[i].second));
    if (i == kShown || text.size() + line.size() > kMaxMarkdown / 4 * 3) {
      text += fmt::format("- {} more are left out.\n", counts.size() - i);
      return;
    }
    text += line;
  }
}

/// As code in a cell of a table: there a bar ends the cell even inside backticks, and a backtick ends the code.
std::string code(const std::string& text) {
  std::string result;
  for (const char c : core::printable(text)) {
    result += c == '|' ? "\\|" : c == '`' ? "'" : std::string(1, c);
  }
  return "`" + result + "`";
}

std::string failure_row(const CaseFacts& facts, const std::string& digest) {
  const std::string command = facts.reproduce.empty() ? "" : fmt::format("<br>{}", code(facts.reproduce));
  return fmt::format("| **{}** | {} #{}{} | {} |\n", facts.status, markdown_text(facts.id), digest, command,
                     markdown_text(facts.reason + (facts.cause.empty() ? "" : "; cause: " + facts.cause)));
}

/// Failures, then lost cases, as many as fit.
void add_failures(const std::vector<CaseFacts>& cases, std::string& text) {
  std::vector<const CaseFacts*> bad;
  for (const Outcome wanted : {Outcome::failed, Outcome::broken}) {
    for (const CaseFacts& facts : cases) {
      if (outcome_of(facts.status) == wanted) {
        bad.push_back(&facts);
      }
    }
  }
  std::vector<std::string> digests;
  for (const CaseFacts* facts : bad) {
    digests.push_back(facts->digest);
  }
  digests = short_digests(digests);
  constexpr std::size_t kShare = kMaxMarkdown / 2;
  for (std::size_t i = 0; i < bad.size(); ++i) {
    text += i == 0 ? "\n| status | case | why |\n|---|---|---|\n" : "";
    const std::string row = failure_row(*bad[i], digests[i]);
    if (text.size() + row.size() > kShare) {
      text += fmt::format("\nLeft out: {}.\n", core::counted(static_cast<double>(bad.size() - i), "more failure"));
      return;
    }
    text += row;
  }
}

/// The first cases that only --fail-on makes fail.
void add_failed_on_request(const json& report, const std::vector<CaseFacts>& cases, std::string& text) {
  constexpr std::size_t kMaxShown = 50;
  const std::set<std::string> statuses = failed_on_request(report);
  std::size_t shown = 0;
  for (const CaseFacts& facts : cases) {
    if (shown == kMaxShown || !statuses.contains(facts.status)) {
      continue;
    }
    text += shown++ == 0
                ? "\n**These fail the run because `--fail-on` says so.**\n\n| status | case | why |\n|---|---|---|\n"
                : "";
    text += fmt::format("| {} | {} | {} |\n", facts.status, markdown_text(facts.id), markdown_text(facts.reason));
  }
}

/// What was required beyond "no case failed": the contract, as much of it as fits, and the budget.
void add_gates(const json& report, std::string& text) {
  if (const json budget = report.value("budget", json()); budget.is_object() && budget.at("not_started") > 0) {
    text += fmt::format("\n**{} skipped: the budget of {} s was used up.**\n",
                        core::counted(budget.at("not_started").get<double>(), "case"),
                        short_number(budget.at("limit_s"), ".6g"));
  }
  if (!breaks_contract(report)) {
    return;
  }
  const json& contract = report.at("contract");
  const json& broken = contract.at("broken");
  text += fmt::format(
      "\n**Contract broken: {} of {} promised cases did not run.**{}\n\n| now | case | why |\n|---|---|---|\n",
      broken.size(), contract.at("promised").get<std::size_t>(),
      contract.contains("derived") ? " The contract was derived and not seen in a run." : "");
  constexpr std::size_t kShare = kMaxMarkdown / 4;
  for (std::size_t i = 0; i < broken.size(); ++i) {
    const json& promise = broken[i];
    const std::string row = fmt::format("| {} | {} | {} |\n", markdown_text(promise.at("status").get<std::string>()),
                                        markdown_text(promise.at("id").get<std::string>()),
                                        markdown_text(promise.at("reason").get<std::string>()));
    if (text.size() + row.size() > kShare) {
      text += fmt::format("\n{} more promises are left out.\n", broken.size() - i);
      return;
    }
    text += row;
  }
}

/// How the run compares with its baseline, if it has one, with the first regressions.
void add_baseline(const json& report, std::string& text) {
  if (!report.contains("comparison")) {
    return;
  }
  constexpr std::size_t kMaxShown = 50;
  const json& comparison = report.at("comparison");
  text += fmt::format("\nAgainst the baseline {}: {}.\n", markdown_text(comparison.at("baseline").get<std::string>()),
                      markdown_text(comparison.at("sentence").get<std::string>()));
  const json& regressions = comparison.at("regressions");
  for (std::size_t i = 0; i < std::min(kMaxShown, regressions.size()) && text.size() < kMaxMarkdown / 2; ++i) {
    const json& change = regressions[i];
    text += i == 0 ? "\n| change | case | base | now |\n|---|---|---|---|\n" : "";
    text += fmt::format("| **{}** | {} | {} | {} |\n", markdown_text(change.at("change").get<std::string>()),
                        markdown_text(change.at("id").get<std::string>()),
                        markdown_text(change.at("base").at("status").get<std::string>()),
                        markdown_text(change.at("new").at("status").get<std::string>()));
  }
}

}  // namespace

std::string markdown_text(const std::string& text) {
  constexpr std::string_view kMarkup = "|<>*_`[]\\";
  std::string result;
  for (const char c : core::printable(text)) {
    result += kMarkup.find(c) == std::string_view::npos ? std::string(1, c) : fmt::format("\\{}", c);
  }
  return result;
}

std::string render_markdown(const json& report) {
  std::vector<CaseFacts> cases;
  for (const json& record : report.at("cases")) {
    cases.push_back(facts_of(record));
  }
  const json plan = report.value("plan", json::object());
  std::string text = fmt::format("### te-numcheck {}: {}{}\n\n{}\n", markdown_text(plan.value("name", "")),
                                 gates_of(report), counts_of(cases), markdown_text(machine_line(report)));
  if (report.value("interrupted", false)) {
    text += "\n**The run was interrupted.**\n";
  }
  for (const std::string& caveat : caveats_of(report)) {
    text += fmt::format("\n**{}**\n", markdown_text(caveat));
  }
  if (const std::string unseen = unseen_fault_text(report); !unseen.empty()) {
    text += fmt::format("\n{}\n", markdown_text(unseen));
  }
  add_gates(report, text);
  add_failed_on_request(report, cases, text);
  add_baseline(report, text);
  add_failures(cases, text);
  add_override(report, text);
  add_not_told(report, text);
  const std::vector<Group> groups = groups_of(cases);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    text += i == 0 ? "\n| op | mode | backend | passed | failed | lost | other | not run | worst error/limit | at |\n"
                     "|---|---|---|--:|--:|--:|--:|--:|--:|---|\n"
                   : "";
    const std::string row = row_of(groups[i]);
    if (text.size() + row.size() > kMaxMarkdown) {
      return text + fmt::format("\nLeft out: {}.\n", core::counted(static_cast<double>(groups.size() - i), "more row"));
    }
    text += row;
  }
  return text;
}

}  // namespace numcheck::report::views
