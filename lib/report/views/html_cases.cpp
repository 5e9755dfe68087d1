// Every case as a row, in groups of one op and mode. What did not simply pass links to its details.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"
#include "report/views/html_sections.hpp"
#include "report/views/html_text.hpp"
#include "report/views/not_told.hpp"

namespace numcheck::report::views {
namespace {

/// A browser shows that many rows at once. Of larger reports the page has the rows that matter most.
constexpr std::size_t kMaxRows = 10000;

std::string meter(double ratio) {
  if (std::isnan(ratio)) {
    return "";
  }
  const int percent = static_cast<int>(std::lround(100 * std::clamp(ratio, 0.0, 1.0)));
  return fmt::format("<span class=\"meter{}\"><i style=\"width:{}%\"></i></span>{}", ratio > 1 ? " over" : "", percent,
                     std::isinf(ratio) ? "∞" : html_text(ratio_text(number(ratio))));
}

std::string row(const HtmlSource& source, std::size_t i, bool has_details) {
  const CaseFacts& facts = source.facts[i];
  const std::string id = "<span class=\"id\">" + html_text(facts.id) + "</span>";
  const std::string name = has_details ? fmt::format("<a href=\"#{}\">{}</a>", case_anchor(source.digests[i]), id) : id;
  const auto remark = [](const std::string& words) {
    return words.empty() ? "" : "<span class=\"reason\">" + html_text(words) + "</span>";
  };
  const std::string reason =
      (facts.status == "pass" ? "" : remark(facts.reason)) + remark(not_told_by(source.cases[i]));
  return fmt::format("<tr><td>{}</td><td>{}{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td></tr>\n",
                     pill(facts.status), name, reason, meter(facts.ratio), html_text(facts.tightest),
                     facts.seconds > 0 ? seconds_text(facts.seconds) : "");
}

/// Indices of the cases that get a row: all, or what did not pass first and then the tightest.
std::vector<std::size_t> shown_cases(const std::vector<CaseFacts>& facts) {
  std::vector<std::size_t> order(facts.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  if (order.size() > kMaxRows) {
    const auto rank = [&facts](std::size_t i) {
      const Outcome outcome = outcome_of(facts[i].status);
      const double worst = outcome == Outcome::failed ? 3 : outcome == Outcome::broken ? 2 : 0;
      return worst + (facts[i].status == "warn" || facts[i].status == "inconclusive" ? 1.5 : 0) +
             (std::isnan(facts[i].ratio) ? -1 : std::min(facts[i].ratio, 1.0));
    };
    std::ranges::stable_sort(order, [&](std::size_t left, std::size_t right) { return rank(left) > rank(right); });
    order.resize(kMaxRows);
    std::ranges::sort(order);
  }
  return order;
}

std::string filter_form() {
  return "<form class=\"filter\" id=\"filter\" hidden><label>op <select name=\"op\"><option "
         "value=\"\">all</option></select>"
         "</label><label>mode <select name=\"mode\"><option value=\"\">all</option></select></label><label>status "
         "<select "
         "name=\"status\"><option value=\"\">all</option></select></label><label>text <input type=\"search\" "
         "name=\"text\" "
         "placeholder=\"part of an identifier or a reason\"></label><output></output></form>\n";
}

}  // namespace

std::string cases_section(const HtmlSource& source) {
  if (source.facts.empty()) {
    return "";
  }
  const std::vector<std::size_t> shown = shown_cases(source.facts);
  std::map<std::pair<std::string, std::string>, std::size_t> place;
  std::vector<std::pair<std::string, std::string>> groups;
  std::vector<std::string> bodies;
  for (const std::size_t i : shown) {
    const CaseFacts& facts = source.facts[i];
    const auto [at, is_new] = place.try_emplace({facts.op, facts.mode}, groups.size());
    if (is_new) {
      groups.emplace_back(facts.op, facts.mode);
      bodies.emplace_back();
    }
    bodies[at->second] += row(source, i, is_notable(facts.status));
  }
  std::string text = heading("cases", "All cases");
  if (shown.size() < source.facts.size()) {
    text += fmt::format(
        "<p>The report has {} cases, more than a page can show. These are the {} that did not pass or came closest to "
        "their "
        "limit; <code>te-numcheck report … --csv</code> has all.</p>\n",
        source.facts.size(), shown.size());
  }
  text +=
      filter_form() +
      "<table class=\"cases\"><colgroup><col class=\"c1\"><col class=\"c2\"><col class=\"c3\"><col class=\"c4\"><col "
      "class=\"c5\"></colgroup><thead><tr><th>status</th><th>case</th><th>error/limit</th><th>tightest gate</th>"
      "<th class=\"n\">time</th></tr></thead>\n";
  for (std::size_t g = 0; g < groups.size(); ++g) {
    text += fmt::format("<tbody id=\"{}\"><tr class=\"group\"><th colspan=\"5\">{} {}</th></tr>\n{}</tbody>\n",
                        group_anchor(groups[g].first, groups[g].second), html_text(groups[g].first),
                        html_text(groups[g].second), bodies[g]);
  }
  return text + "</table>\n";
}

}  // namespace numcheck::report::views
