// JUnit XML, as CI servers read it: a test suite for each op and mode, a test case for each case. Whatever makes the exit
// code 1 is a failure here, once.
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/printable.hpp"
#include "report/case_facts.hpp"
#include "report/contract.hpp"
#include "report/criterion.hpp"
#include "report/gate_findings.hpp"
#include "report/number.hpp"
#include "report/views/html_text.hpp"
#include "report/views/views.hpp"
#include "tolerance/criterion_words.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

struct Suite {
  std::string name;
  std::string cases;
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
  double seconds = 0;

  [[nodiscard]] std::string counts() const {
    return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.6f}\"", tests, failures,
                       errors, skipped, seconds);
  }
};

/// The causes that are known and the gates that failed, a line each, and how to run the case again.
std::string details(const json& record, const CaseFacts& facts) {
  std::string text;
  for (const json& run : record.at("runs")) {
    for (const auto& [port, output] : run.at("outputs").items()) {
      for (const json& finding : output.value("findings", json::array())) {
        if (const auto cause = finding.value("cause", std::string()); !cause.empty()) {
          text += html_text(fmt::format("{}: {}", port, cause)) + "\n";
        }
      }
      for (const json& criterion : output.at("criteria")) {
        if (!criterion.value("ok", true)) {
          text += html_text(fmt::format("{}: {}  ({})", port, tolerance::words_of(criterion_of(criterion)),
                                        run.at("implementation").get<std::string>())) +
                  "\n";
        }
      }
    }
  }
  return text + (facts.reproduce.empty() ? "" : "run again: " + html_text(facts.reproduce) + "\n");
}

/// The case as a failure, because its verdict is one or because a gate makes it one.
std::string failure_element(const json& record, const CaseFacts& facts, const std::string& type,
                            const std::string& message, const std::vector<GateFinding>& findings) {
  std::string text;
  for (const GateFinding& finding : findings) {
    text += html_text(finding.message) + "\n";
  }
  return fmt::format("   <failure type=\"{}\" message=\"{}\">{}</failure>\n", html_text(type), message,
                     text + details(record, facts));
}

void add_case(const json& record, const CaseFacts& facts, const std::vector<GateFinding>& findings, Suite& suite) {
  ++suite.tests;
  suite.seconds += facts.seconds;
  suite.cases += fmt::format("  <testcase name=\"{}\" classname=\"numcheck.{}.{}\" time=\"{:.6f}\">\n",
                             html_text(facts.id), html_text(facts.op), html_text(facts.mode), facts.seconds);
  suite.cases += fmt::format("   <properties><property name=\"digest\" value=\"{}\"/>", html_text(facts.digest));
  if (!std::isnan(facts.ratio)) {
    suite.cases +=
        fmt::format("<property name=\"error_over_limit\" value=\"{}\"/>", short_number(number(facts.ratio), ".6g"));
  }
  suite.cases += "</properties>\n";
  const std::string message = html_text(facts.status + (facts.reason.empty() ? "" : ": " + facts.reason));
  const Outcome outcome = outcome_of(facts.status);
  if (!findings.empty() && (outcome == Outcome::passed || outcome == Outcome::skipped)) {
    ++suite.failures;
    suite.cases +=
        failure_element(record, facts, findings.front().type, html_text(findings.front().message), findings) +
        "  </testcase>\n";
    return;
  }
  switch (outcome) {
    case Outcome::failed:
      ++suite.failures;
      suite.cases +=
          failure_element(record, facts, facts.status == "fail" ? facts.tightest : facts.status, message, findings);
      break;
    case Outcome::broken:
      ++suite.errors;
      suite.cases += fmt::format("   <error type=\"{}\" message=\"{}\">{}</error>\n", html_text(facts.status), message,
                                 details(record, facts));
      break;
    case Outcome::skipped:
      ++suite.skipped;
      suite.cases += fmt::format("   <skipped message=\"{}\"/>\n", message);
      break;
    case Outcome::passed:
      suite.cases += facts.status == "pass" ? "" : fmt::format("   <system-out>{}</system-out>\n", message);
      break;
  }
  suite.cases += "  </testcase>\n";
}

/// What gates found that is about no case, as a suite of its own, which says so where a gate found nothing at all.
std::string gate_suite(const json& report, const GateFindings& gates, Suite& all) {
  Suite suite{.name = "gates", .cases = {}};
  const auto add = [&](const std::string& test, const std::string& content) {
    ++suite.tests;
    suite.cases += fmt::format("  <testcase name=\"{}\" classname=\"numcheck.gates\" time=\"0\">{}</testcase>\n",
                               html_text(test), content);
  };
  for (const GateFinding& finding : gates.elsewhere()) {
    ++suite.failures;
    add(finding.name,
        fmt::format("<failure type=\"{}\" message=\"{}\"/>", html_text(finding.type), html_text(finding.message)));
  }
  if (report.contains("contract") && !breaks_contract(report)) {
    add("every promised case ran", "");
  }
  if (report.contains("comparison") && report.at("comparison").at("summary").at("regressions") == 0) {
    add("no regression against the baseline", "");
  }
  all.tests += suite.tests;
  all.failures += suite.failures;
  return suite.tests == 0
             ? ""
             : fmt::format(" <testsuite name=\"{}\" {}>\n{} </testsuite>\n", suite.name, suite.counts(), suite.cases);
}

}  // namespace

std::string render_junit(const json& report) {
  std::vector<Suite> suites;
  std::map<std::string, std::size_t> places;
  Suite all;
  const GateFindings gates(report);
  for (const json& record : report.at("cases")) {
    const CaseFacts facts = facts_of(record);
    const std::string name = facts.op + " " + facts.mode;
    const auto [place, is_new] = places.try_emplace(name, suites.size());
    if (is_new) {
      suites.push_back({.name = name, .cases = {}});
    }
    add_case(record, facts, gates.of(record), suites[place->second]);
  }
  std::string text;
  for (const Suite& suite : suites) {
    text += fmt::format(" <testsuite name=\"{}\" {}>\n{} </testsuite>\n", html_text(suite.name), suite.counts(),
                        suite.cases);
    all.tests += suite.tests;
    all.failures += suite.failures;
    all.errors += suite.errors;
    all.skipped += suite.skipped;
    all.seconds += suite.seconds;
  }
  text += gate_suite(report, gates, all);
  const json plan = report.value("plan", json::object());
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"te-numcheck {}\" {} "
      "timestamp=\"{}\">\n{}</testsuites>\n",
      html_text(plan.value("name", "")), all.counts(), html_text(report.value("started", "")), text);
}

}  // namespace numcheck::report::views
