// JSON Schema of report.json. Later minor versions may add fields, so unknown ones are allowed everywhere.
#include <string>

#include <nlohmann/json.hpp>

#include "report/output_members.hpp"
#include "report/picture_members.hpp"
#include "report/record_members.hpp"
#include "report/report.hpp"
#include "report/schema_builder.hpp"
#include "report/schema_tables.hpp"
#include "report/summary.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using namespace schema;

json number_definition() {
  return {
      {"description", "a number; JSON has no NaN and no infinities, so those are written by name"},
      {"oneOf", json::array({{{"type", "number"}}, {{"type", "string"}, {"enum", {"NaN", "Infinity", "-Infinity"}}}})}};
}

json status_definition() {
  json names = json::array();
  for (const verdict::Status status : verdict::all_statuses()) {
    names.push_back(verdict::status_name(status));
  }
  return {{"type", "string"}, {"enum", std::move(names)}};
}

json metrics_definition() {
  json properties = properties_of(norm_members());
  properties.update(properties_of(statistics_members()));
  return object(std::move(properties));
}

json output_definition() {
  json definition = rule_of(output_members());
  definition["properties"].update(picture_properties());
  return definition;
}

json times_definition() {
  json properties = properties_of(stage_members());
  properties["wall"] = ref("number");
  return object(std::move(properties));
}

json case_definition() {
  json properties = {{"op", text("op")},
                     {"mode", text("mode")},
                     {"backend", text("backend")},
                     {"params", map_of({{"type", {"boolean", "number", "string"}}})},
                     {"inputs", {{"type", "object"}}},
                     {"seed", count("seed of the generator")},
                     {"environment", map_of(text_or_null("value, null: unset"))}};
  properties.update(properties_of(case_members()));
  json definition = object(std::move(properties));
  definition["properties"]["reproduce"] = text("command that runs this case alone");
  definition["properties"]["algorithms"] = {{"type", {"string", "object"}},
                                            {"description", "\"heuristic\", \"all\" or {\"top\": N}"}};
  definition["properties"]["xfail"] = object({{"reason", text("why it is known to fail")}, {"expires", text("date")}});
  definition["properties"]["xfail"]["properties"]["cause"] = text("the cause that is known, if only that one is");
  return definition;
}

json machine_definition() {
  json device = object({{"name", text("name")},
                        {"sm", count("10 * major + minor")},
                        {"index", count("index")},
                        {"simulated", flag("modelled on the host: no hardware evidence")},
                        {"uuid", text("identity")},
                        {"memory_bytes", count("bytes")},
                        {"multiprocessors", count("number")}});
  device["type"] = {"object", "null"};
  json host = object({{"cpus", count("threads used")},
                      {"isa", text("instruction set of our own loops")},
                      {"blas", text("BLAS of the reference")}});
  host["properties"]["name"] = text("only with --include-host");
  return object({{"device", std::move(device)},
                 {"driver", text_or_null("driver version")},
                 {"libraries", map_of({{"type", "string"}})},
                 {"host", std::move(host)}});
}

json summary_definition() {
  json properties = {{"cases", count("cases of the report")}};
  for (const verdict::Status status : verdict::all_statuses()) {
    properties[verdict::status_name(status)] = count("cases that ended so");
  }
  return object(std::move(properties));
}

}  // namespace

nlohmann::json report_schema() {
  json schema =
      object({{"schema", {{"const", kReportSchemaName}}},
              {"schema_version", {{"type", "string"}, {"pattern", "^1\\.[0-9]+\\.[0-9]+$"}}},
              {"tool", object({{"version", text("program version")},
                               {"revision", text("source revision")},
                               {"dirty", flag("built from changed sources")},
                               {"argv", list_of({{"type", "string"}})}})},
              {"plan", object({{"name", text("name")},
                               {"digest", text("digest of the merged plan")},
                               {"seed", count("seed")},
                               {"expanded", count("cases of the plan")},
                               {"selected", count("cases that filters and shard left")},
                               {"shard", object({{"index", count("0-based")}, {"count", count("shards")}})}})},
              {"machine", machine_definition()},
              {"environment", map_of(text_or_null("value, null: unset"))},
              {"started", text("ISO 8601, UTC")},
              {"interrupted", flag("stopped before all cases had run")},
              {"time_s", times_definition()},
              {"summary", summary_definition()},
              {"cases", {{"type", "array"}}}});
  schema["properties"]["brief"] = flag("cases have their essential members only; absent: false");
  schema["properties"]["notes"] =
      list_of(text("what happened beside the cases: a worker that was replaced between two"));
  schema["properties"]["override_effect"] = override_definition();
  schema["properties"]["configurations"] = object({{"asked", count("shapes whose kernels the library was asked for")},
                                                   {"kept", count("cases that show all of those kernels")},
                                                   {"offered", count("distinct kernel configurations")},
                                                   {"verified", count("of those, run and judged")}});
  schema["properties"]["causes"] = causes_definition();
  schema["properties"]["precision_map"] = precision_map_definition();
  schema["properties"]["library_changes"] = library_changes_definition();
  schema["if"] = {{"properties", {{"brief", {{"const", true}}}}}, {"required", {"brief"}}};
  schema["then"] = {{"properties", {{"cases", list_of(ref("brief_case"))}}}};
  schema["else"] = {{"properties", {{"cases", list_of(ref("case"))}}}};
  schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  schema["title"] = "te-numcheck report";
  schema["definitions"] = {{"number", number_definition()},        {"status", status_definition()},
                           {"metrics", metrics_definition()},      {"output", output_definition()},
                           {"run", rule_of(run_members())},        {"case", case_definition()},
                           {"brief_case", brief_case_definition()}};
  return schema;
}

}  // namespace numcheck::report
