// What the run was required to do besides passing: statuses that fail it, the budget, the contract and the baseline.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"
#include "report/views/html_sections.hpp"
#include "report/views/html_text.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxRows = 500;

std::string limited_table(const std::vector<std::string>& head, std::vector<std::vector<std::string>> rows) {
  const std::size_t more = rows.size() - std::min(rows.size(), kMaxRows);
  rows.resize(rows.size() - more);
  return html_table(head, rows) +
         (more > 0 ? fmt::format("<p class=\"soft\">{} more rows are in the report.</p>\n", more) : "");
}

std::string contract_part(const json& contract) {
  const json& broken = contract.at("broken");
  const auto promised = contract.at("promised").get<std::size_t>();
  std::string text = broken.empty()
                         ? fmt::format("<p>The contract is kept: {} of {} promised cases ran.</p>\n",
                                       contract.at("kept").get<std::size_t>(), promised)
                         : fmt::format("<p><b>The contract is broken</b>: {} of {} promised cases did not run.</p>\n",
                                       broken.size(), promised);
  if (contract.contains("derived")) {
    text += fmt::format("<p>It was derived and not seen in a run: {}</p>\n",
                        html_text(contract.at("derived").get<std::string>()));
  }
  for (const json& library : part_at(contract, "absent_libraries")) {
    text += fmt::format("<p>It names {}, which is not here.</p>\n", html_text(library.get<std::string>()));
  }
  std::vector<std::vector<std::string>> rows;
  for (const json& promise : broken) {
    rows.push_back(
        {pill(text_at(promise, "status")), html_text(text_at(promise, "id")), html_text(text_at(promise, "reason"))});
  }
  return text + (rows.empty() ? "" : limited_table({"now", "promised case", "why"}, std::move(rows)));
}

std::string baseline_part(const json& comparison) {
  std::string text = fmt::format("<p>Against the baseline {}: {}.</p>\n", html_text(text_at(comparison, "baseline")),
                                 html_text(text_at(comparison, "sentence")));
  for (const json& setting : part_at(comparison, "settings")) {
    text += fmt::format("<p class=\"soft\">{}</p>\n", html_text(setting.get<std::string>()));
  }
  const json& listed = comparison.at("regressions");
  std::vector<std::vector<std::string>> rows;
  for (const json& change : listed) {
    const json &base = change.at("base"), &now = change.at("new");
    rows.push_back({html_text(text_at(change, "change")), html_text(text_at(change, "id")),
                    html_text(text_at(base, "status")), html_text(text_at(now, "status")),
                    html_text(ratio_text(base.at("error_over_limit"))),
                    html_text(ratio_text(now.at("error_over_limit"))), html_text(text_at(change, "implementation"))});
  }
  const auto all = comparison.at("summary").at("regressions").get<std::size_t>();
  text += rows.empty()
              ? ""
              : limited_table({"regression", "case", "base", "now", ">error/limit, base", ">now", "what else changed"},
                              std::move(rows));
  return text + (all > listed.size()
                     ? fmt::format("<p>{} more regressions: compare the reports.</p>\n", all - listed.size())
                     : "");
}

}  // namespace

std::string gates_section(const HtmlSource& source) {
  const json& report = source.report;
  std::string text, statuses;
  for (const json& status : part_at(part_at(report, "gates"), "fail_on")) {
    statuses += " " + pill(status.get<std::string>());
  }
  text += statuses.empty() ? "" : fmt::format("<p>These fail the run as well:{}</p>\n", statuses);
  if (const json& budget = part_at(report, "budget"); !budget.empty()) {
    const auto left = budget.at("not_started").get<std::size_t>();
    text += left == 0 ? ""
                      : fmt::format("<p><b>{} skipped</b>: the budget of {} s was used up.</p>\n", cases_text(left),
                                    html_text(short_number(budget.at("limit_s"), ".6g")));
  }
  if (const json& contract = part_at(report, "contract"); !contract.empty()) {
    text += contract_part(contract);
  }
  if (const json& comparison = part_at(report, "comparison"); !comparison.empty()) {
    text += baseline_part(comparison);
  }
  return text.empty() ? "" : heading("gates", "What was required") + text;
}

}  // namespace numcheck::report::views
