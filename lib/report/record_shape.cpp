#include "report/record_shape.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/parallel.hpp"
#include "report/report.hpp"
#include "report/schema_check.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

const SchemaChecker& checker() {
  static const SchemaChecker checker(report_schema());
  return checker;
}

/// A report of a later minor version may have words that this one does not know.
Strictness strictness_for(const json& report) {
  return report.at("schema_version") == kReportSchemaVersion ? Strictness::words : Strictness::types;
}

}  // namespace

std::string record_error(const json& record) {
  const auto found = checker().check_as("case", record, Strictness::everything);
  return found.has_value() ? found->sentence("the record") : "";
}

std::string record_type_error(const json& report, const json& record) {
  const char* kind = report.value("brief", false) ? "brief_case" : "case";
  const auto found = checker().check_as(kind, record, strictness_for(report));
  return found.has_value() ? found->sentence("") : "";
}

std::string type_error(const json& report) {
  if (const auto found = checker().check(report, strictness_for(report))) {
    return found->sentence("the report");
  }
  constexpr std::size_t kCasesPerChunk = 256;
  const json& cases = report.at("cases");
  std::vector<std::string> problems((cases.size() + kCasesPerChunk - 1) / kCasesPerChunk);
  core::parallel_chunks(cases.size(), kCasesPerChunk, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end && problems[chunk].empty(); ++i) {
      if (const std::string problem = record_type_error(report, cases[i]); !problem.empty()) {
        problems[chunk] = fmt::format("cases/{}/{}", i, problem);
      }
    }
  });
  const auto first = std::ranges::find_if(problems, [](const std::string& problem) { return !problem.empty(); });
  return first == problems.end() ? "" : *first;
}

}  // namespace numcheck::report
