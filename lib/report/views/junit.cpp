// JUnit XML, as CI servers read it: a test suite for each op and mode, a test case for each case.
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/printable.hpp"
#include "report/case_facts.hpp"
#include "report/criterion.hpp"
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

/// The gates that failed, a line each, and how to run the case again.
std::string details(const json& record, const CaseFacts& facts) {
  std::string text;
  for (const json& run : record.at("runs")) {
    for (const auto& [port, output] : run.at("outputs").items()) {
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

void add_case(const json& record, Suite& suite) {
  const CaseFacts facts = facts_of(record);
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
  switch (outcome_of(facts.status)) {
    case Outcome::failed:
      ++suite.failures;
      suite.cases += fmt::format("   <failure type=\"{}\" message=\"{}\">{}</failure>\n",
                                 html_text(facts.status == "fail" ? facts.tightest : facts.status), message,
                                 details(record, facts));
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

/// What a gate besides the verdicts found: a case, and what is wrong with it.
struct GateFailure {
  std::string id, type, message;
};

/// A suite of its own, whose failures `all` counts, whatever the cases are in theirs; `fine` if there is none.
std::string gate_suite(std::string_view name, const std::vector<GateFailure>& failures, const std::string& fine,
                       Suite& all) {
  Suite suite{.name = std::string(name), .cases = {}};
  const auto add = [&](const std::string& test, const std::string& content) {
    ++suite.tests;
    suite.cases += fmt::format("  <testcase name=\"{}\" classname=\"numcheck.{}\" time=\"0\">{}</testcase>\n",
                               html_text(test), name, content);
  };
  for (const GateFailure& failure : failures) {
    ++suite.failures;
    add(failure.id,
        fmt::format("<failure type=\"{}\" message=\"{}\"/>", html_text(failure.type), html_text(failure.message)));
  }
  if (failures.empty()) {
    add(fine, "");
  }
  all.tests += suite.tests;
  all.failures += suite.failures;
  return fmt::format(" <testsuite name=\"{}\" {}>\n{} </testsuite>\n", name, suite.counts(), suite.cases);
}

/// A case that was to run is a failure here.
std::string contract_suite(const json& report, Suite& all) {
  if (!report.contains("contract")) {
    return "";
  }
  std::vector<GateFailure> failures;
  for (const json& promise : report.at("contract").at("broken")) {
    const std::string status = promise.at("status").get<std::string>();
    failures.push_back({promise.at("id").get<std::string>(), status,
                        fmt::format("promised, but {}: {}", status, promise.at("reason").get<std::string>())});
  }
  return gate_suite("contract", failures, "every promised case ran", all);
}

/// The regressions that the report names.
std::string baseline_suite(const json& report, Suite& all) {
  if (!report.contains("comparison")) {
    return "";
  }
  std::vector<GateFailure> failures;
  for (const json& change : report.at("comparison").at("regressions")) {
    const std::string kind = change.at("change").get<std::string>();
    failures.push_back({change.at("id").get<std::string>(), kind,
                        fmt::format("{}: {} -> {}", kind, change.at("base").at("status").get<std::string>(),
                                    change.at("new").at("status").get<std::string>())});
  }
  return gate_suite("baseline", failures, "no regression", all);
}

}  // namespace

std::string render_junit(const json& report) {
  std::vector<Suite> suites;
  std::map<std::string, std::size_t> places;
  Suite all;
  for (const json& record : report.at("cases")) {
    const CaseFacts facts = facts_of(record);
    const std::string name = facts.op + " " + facts.mode;
    const auto [place, is_new] = places.try_emplace(name, suites.size());
    if (is_new) {
      suites.push_back({.name = name, .cases = {}});
    }
    add_case(record, suites[place->second]);
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
  text += contract_suite(report, all) + baseline_suite(report, all);
  const json plan = report.value("plan", json::object());
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"te-numcheck {}\" {} "
      "timestamp=\"{}\">\n{}</testsuites>\n",
      html_text(plan.value("name", "")), all.counts(), html_text(report.value("started", "")), text);
}

}  // namespace numcheck::report::views
