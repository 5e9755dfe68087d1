#include "report/result_lines.hpp"

#include <array>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "report/schema_builder.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

constexpr std::array kInHeader = {"schema", "schema_version", "tool", "plan", "machine", "environment", "started"};
constexpr std::array kInSummary = {"summary", "interrupted", "time_s"};
/// If the report has them.
constexpr std::array kAlsoInSummary = {"gates", "budget", "contract", "comparison"};

json members_of(const json& object, std::span<const char* const> names) {
  json picked = json::object();
  for (const char* name : names) {
    picked[name] = object.at(name);
  }
  return picked;
}

json line(const char* kind, json content) {
  json object = json::object();
  object[kind] = std::move(content);
  return object;
}

json rule(const char* kind, const char* description, json content) {
  json object = schema::object(line(kind, schema::described(std::move(content), description)));
  object["description"] = description;
  return object;
}

}  // namespace

json header_line(const RunFacts& facts) {
  return line("header", members_of(make_report(facts, {}), kInHeader));
}

json case_line(const json& record) {
  return line("case", without_folders(record));
}

json summary_line(const json& report) {
  json summary = members_of(report, kInSummary);
  for (const char* name : kAlsoInSummary) {
    if (const auto member = report.find(name); member != report.end()) {
      summary[name] = *member;
    }
  }
  return line("summary", std::move(summary));
}

json line_rule(const json& properties) {
  json summary = schema::object(members_of(properties, kInSummary));
  summary["properties"].update(members_of(properties, kAlsoInSummary));
  return {{"description", "a line of run --jsonl: first the header, then a line for each case, last the summary"},
          {"oneOf", json::array({rule("header", "what is known before the first case ends",
                                      schema::object(members_of(properties, kInHeader))),
                                 rule("case", "a case, in order of completion", schema::ref("case")),
                                 rule("summary", "what is known at the end", std::move(summary))})}};
}

}  // namespace numcheck::report
