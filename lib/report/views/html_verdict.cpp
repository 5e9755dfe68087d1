// The verdict in one screen: a sentence, counts by status, and the matrix of ops and modes.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"
#include "report/views/html_sections.hpp"
#include "report/views/html_text.hpp"
#include "verdict/record.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

/// More than this program has, but a report may have anything.
constexpr std::size_t kMaxOps = 200, kMaxModes = 50;

struct Counts {
  std::map<std::string, std::size_t> by_status;
  std::map<Outcome, std::size_t> by_outcome;

  explicit Counts(const std::vector<CaseFacts>& facts) {
    for (const CaseFacts& one : facts) {
      ++by_status[one.status];
      ++by_outcome[outcome_of(one.status)];
    }
  }
  [[nodiscard]] std::size_t of(Outcome outcome) const {
    const auto found = by_outcome.find(outcome);
    return found == by_outcome.end() ? 0 : found->second;
  }
  [[nodiscard]] std::size_t of(const std::string& status) const {
    const auto found = by_status.find(status);
    return found == by_status.end() ? 0 : found->second;
  }
};

struct Verdict {
  const char* look;  ///< class of the head
  std::string sentence;
};

/// "; 5 of 12 cases did not run", so that a green page never hides what is missing.
std::string not_run_text(const Counts& counts) {
  const std::size_t idle = counts.of(Outcome::skipped) - counts.of("xfail");
  std::size_t all = 0;
  for (const auto& [status, count] : counts.by_status) {
    all += count;
  }
  return idle == 0 ? "" : fmt::format("; {} of {} did not run", idle, cases_text(all));
}

Verdict verdict_of(const Counts& counts) {
  const std::size_t failed = counts.of(Outcome::failed), broken = counts.of(Outcome::broken);
  const std::size_t passed = counts.of(Outcome::passed), judged = failed + passed;
  if (failed > 0) {
    return {"bad", fmt::format("{} of {} judged case{} fail{}", failed, judged, judged == 1 ? "" : "s",
                               failed == 1 ? "s" : "")};
  }
  if (broken > 0) {
    return {"bad", fmt::format("{} could not be judged; {} passed", cases_text(broken), passed)};
  }
  if (passed == 0) {
    return {"so", "Nothing was verified"};
  }
  const std::size_t warned = counts.of("warn"), doubtful = counts.of("inconclusive");
  std::string sentence = passed == 1 ? "The judged case passes" : fmt::format("All {} judged cases pass", passed);
  if (warned + doubtful > 0) {
    sentence += fmt::format(", {} of them with {}", warned + doubtful,
                            doubtful == 0 ? "a warning"
                            : warned == 0 ? "little proof"
                                          : "a warning or little proof");
  }
  return {warned + doubtful + counts.of("skipped") > 0 ? "so" : "good", sentence};
}

/// What the matrix shows of the cases of one op in one mode.
struct Cell {
  std::size_t cases = 0, judged = 0, failed = 0, broken = 0, doubtful = 0, warned = 0;
  double ratio = std::nan("");

  void add(const CaseFacts& facts) {
    ++cases;
    const Outcome outcome = outcome_of(facts.status);
    judged += outcome == Outcome::failed || outcome == Outcome::passed ? 1 : 0;
    failed += outcome == Outcome::failed ? 1 : 0;
    broken += outcome == Outcome::broken ? 1 : 0;
    warned += facts.status == "warn" ? 1 : 0;
    doubtful += facts.status == "inconclusive" ? 1 : 0;
    if (!(facts.ratio <= ratio) && !std::isnan(facts.ratio)) {
      ratio = facts.ratio;
    }
  }
  [[nodiscard]] const char* look() const {
    if (failed + broken > 0) {
      return "r5";
    }
    if (warned > 0) {
      return "r4";
    }
    if (judged == 0) {
      return "none";
    }
    if (doubtful == judged) {
      return "r6";
    }
    return ratio > 0.75 ? "r3" : ratio > 0.5 ? "r2" : ratio > 0.25 ? "r1" : "r0";
  }
  [[nodiscard]] std::string number_text() const {
    if (judged == 0) {
      return broken > 0 ? "broken" : "–";
    }
    return std::isinf(ratio) ? "∞" : std::isnan(ratio) ? "·" : ratio_text(number(ratio));
  }
  [[nodiscard]] std::string count_text() const {
    return failed > 0                     ? fmt::format("{} of {} fail", failed, cases)
           : broken > 0                   ? fmt::format("{} of {} broken", broken, cases)
           : judged < cases && judged > 0 ? fmt::format("{} of {} ran", judged, cases)
           : judged == 0                  ? fmt::format("{} not run", cases)
                                          : cases_text(cases);
  }
};

/// Names in the order in which they first appear.
class Names {
 public:
  void note(const std::string& name) {
    if (known_.insert(name).second) {
      in_order_.push_back(name);
    }
  }
  /// As many as a table can show.
  [[nodiscard]] std::span<const std::string> first(std::size_t count) const {
    return std::span(in_order_).first(std::min(count, in_order_.size()));
  }
  [[nodiscard]] std::size_t size() const noexcept { return in_order_.size(); }

 private:
  std::set<std::string> known_;
  std::vector<std::string> in_order_;
};

std::string caveats_text(const json& report) {
  std::string text;
  for (const std::string& caveat : caveats_of(report)) {
    text += "<div><b>" + html_text(caveat) + "</b></div>";
  }
  const std::string unseen = unseen_fault_text(report);
  return text + (unseen.empty() ? "" : "<div>" + html_text(unseen) + "</div>");
}

}  // namespace

std::string verdict_section(const HtmlSource& source) {
  const Counts counts(source.facts);
  const json& report = source.report;
  const Verdict verdict = verdict_of(counts);
  const bool interrupted = report.contains("interrupted") && report.at("interrupted") == true;
  std::string text = fmt::format(
      "<header class=\"head {}\"><div class=\"soft small\">te-numcheck {} · {}{}</div><h1>{}{}</h1>"
      "<div>{}</div>{}</header>\n",
      verdict.look, html_text(text_at(part_at(report, "tool"), "version")),
      html_text(text_at(part_at(report, "plan"), "name")),
      text_at(report, "started").empty() ? "" : " · " + html_text(text_at(report, "started")),
      verdict.sentence + not_run_text(counts), interrupted ? " (interrupted)" : "", html_text(machine_line(report)),
      caveats_text(report));
  std::string bar, labels;
  for (const verdict::Status status : verdict::all_statuses()) {
    const std::string name = verdict::status_name(status);
    if (const std::size_t count = counts.of(name); count > 0) {
      bar += fmt::format("<i class=\"b-{}\" style=\"flex:{}\" title=\"{} {}\"></i>", name, count, count, name);
      labels += fmt::format("<span>{} {}</span>\n", pill(name), count);
    }
  }
  return text +
         fmt::format("<div class=\"bar\" aria-hidden=\"true\">{}</div><div class=\"counts\">{}</div>\n", bar, labels);
}

std::string matrix_section(const HtmlSource& source) {
  Names all_ops, all_modes;
  std::map<std::pair<std::string, std::string>, Cell> cells;
  for (const CaseFacts& facts : source.facts) {
    all_ops.note(facts.op);
    all_modes.note(facts.mode);
    cells[{facts.op, facts.mode}].add(facts);
  }
  if (cells.empty()) {
    return "";
  }
  const std::span<const std::string> ops = all_ops.first(kMaxOps), modes = all_modes.first(kMaxModes);
  std::string text = heading("matrix", "Worst error/limit by op and mode");
  if (ops.size() < all_ops.size() || modes.size() < all_modes.size()) {
    text += fmt::format(
        "<p>The report has {} ops and {} modes, more than a page can show. These are the first {} and {}.</p>\n",
        all_ops.size(), all_modes.size(), ops.size(), modes.size());
  }
  text += "<div class=\"wide\"><table class=\"matrix\"><thead><tr><th></th>";
  for (const std::string& mode : modes) {
    text += "<th>" + html_text(mode) + "</th>";
  }
  text += "</tr></thead><tbody>\n";
  for (const std::string& op : ops) {
    text += "<tr><th class=\"op\">" + html_text(op) + "</th>";
    for (const std::string& mode : modes) {
      const auto found = cells.find({op, mode});
      text += found == cells.end()
                  ? "<td></td>"
                  : fmt::format("<td><a class=\"{}\" href=\"#{}\">{}<span>{}</span></a></td>", found->second.look(),
                                group_anchor(op, mode), found->second.number_text(), found->second.count_text());
    }
    text += "</tr>\n";
  }
  text += "</tbody></table></div>\n<div class=\"scale\">";
  for (const auto& [look, label] :
       {std::pair("r0", "up to ¼ of the limit"), std::pair("r1", "½"), std::pair("r2", "¾"), std::pair("r3", "1"),
        std::pair("r4", "warning"), std::pair("r6", "proves little"), std::pair("r5", "failed or broken")}) {
    text += fmt::format("<span class=\"matrix\"><i class=\"{}\"></i>{}</span>\n", look, label);
  }
  return text + "</div>\n";
}

}  // namespace numcheck::report::views
