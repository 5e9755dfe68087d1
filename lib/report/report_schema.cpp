// JSON Schema of report.json. Fields may be added by later minor versions, so unknown ones are allowed everywhere.
#include <string>

#include <nlohmann/json.hpp>

#include "report/report.hpp"
#include "report/schema_tables.hpp"
#include "report/schema_words.hpp"
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

json norms_properties() {
  return {{"max_abs", real("largest |e|, e = got - reference")},
          {"max_rel", real("largest |e| / |y|")},
          {"l1", real("sum of |e|")},
          {"l2", real("square root of the sum of e^2")},
          {"linf", real("largest |e|")},
          {"rel_l2", real("Frobenius-relative error |e|_2 / |y|_2")},
          {"rms", real("root mean square of e")},
          {"mean_signed", real("mean of e")},
          {"nmse", real("sum of e^2 / sum of y^2")},
          {"sqnr_db", real("signal to quantisation noise ratio in dB")},
          {"cosine", real("cosine of the angle between got and reference")}};
}

json metrics_definition() {
  json properties = norms_properties();
  for (const char* name :
       {"elements", "finite", "nonfinite_mismatch", "poison", "zeros", "exact_mismatch", "rounding_elements"}) {
    properties[name] = count("number of elements");
  }
  for (const char* name : {"rms_expected", "effective_bits", "max_ulp", "mean_ulp", "max_over_bound", "z_rms", "z_q999",
                           "z_max", "slope", "slope_se", "intercept", "toward_zero", "rounding_ratio",
                           "rounding_ratio_perfect", "rounding_sd", "rounding_arith", "max_over_half_ulp"}) {
    properties[name] = ref("number");
  }
  properties["expected_constant"] = flag("all reference values are equal");
  properties["ulp_histogram"] = list_of(count("bins 0, (0,1/2], (1/2,1], (1,2], (2,4], ... in output ulps"));
  return object(std::move(properties));
}

json output_definition() {
  const json criterion = object({{"name", text("gate")},
                                 {"measured", ref("number")},
                                 {"limit", ref("number")},
                                 {"ok", flag("measured <= limit")},
                                 {"source", text("where the limit comes from")}});
  const json fake = object({{"name", text("what was put in place of the output")},
                            {"outcome", {{"type", "string"}, {"enum", {"rejected", "accepted", "dropped"}}}},
                            {"detail", text("gate that rejected it, or why it was dropped")}});
  const json worst = object({{"index", list_of(count("batch (if several), row, column"))},
                             {"got", ref("number")},
                             {"got_bits", {{"type", "string"}, {"pattern", "^0x[0-9a-f]+$"}}},
                             {"expected", ref("number")},
                             {"ulps", ref("number")},
                             {"over_bound", ref("number")}});
  const json opinion = object({{"mismatches", count("elements beyond the limit")}, {"max_excess", ref("number")}});
  const json finding =
      object({{"name", text("the op's own statistic")}, {"measured", ref("number")}, {"text", text("what it means")}});
  const json ideal = {
      {"description", "error against exact real arithmetic, where the op as implemented rounds in between; else null"},
      {"anyOf",
       json::array({{{"type", "null"}},
                    object({{"note", text("which rounding that is")}, {"error", object(norms_properties())}})})}};
  return object({{"xxh128", {{"type", "string"}, {"pattern", "^[0-9a-f]{32}$"}}},
                 {"dtype", text("storage format")},
                 {"shape", list_of(count("elements"))},
                 {"sampled", flag("only a sample of the elements was compared")},
                 {"model", text("error model that the limits come from")},
                 {"metrics", ref("metrics")},
                 {"total_error", object(norms_properties())},
                 {"ideal", ideal},
                 {"criteria", list_of(criterion)},
                 {"findings", list_of(finding)},
                 {"error_over_limit", real("measured / limit of the tightest gate")},
                 {"certificate", object({{"vacuous_with", text_or_null("fake that would also have passed")},
                                         {"fakes", list_of(fake)}})},
                 {"opinions", map_of(opinion)},
                 {"worst", list_of(worst)}});
}

json run_definition() {
  return object({{"implementation", text("algorithm, tile, split-k, workspace")},
                 {"details", map_of({{"type", "string"}})},
                 {"workspace_bytes", count("bytes")},
                 {"expected_class", text("precision class that the request should give")},
                 {"observed_class", text("precision class that ran; empty if it was not classified")},
                 {"deterministic", flag("all repetitions gave the same bits")},
                 {"guards", object({{"intact", flag("no guard byte was written")},
                                    {"inputs_intact", flag("inputs hash as before")},
                                    {"detail", text("which guard, and where")}})},
                 {"device_s", ref("number")},
                 {"status", ref("status")},
                 {"failing", text("first failing gate")},
                 {"error", text("text of the error, if this algorithm failed to run")},
                 {"outputs", map_of(ref("output"))}});
}

json seconds(std::initializer_list<const char*> stages) {
  json properties = json::object();
  for (const char* stage : stages) {
    properties[stage] = ref("number");
  }
  return object(std::move(properties));
}

json case_definition() {
  json definition = object({{"id", text("op/params/mode/backend[/inputs][/env], defaults omitted")},
                            {"digest", {{"type", "string"}, {"pattern", "^[0-9a-f]{32}$"}}},
                            {"status", ref("status")},
                            {"reason", text("a sentence, for every status but pass")},
                            {"op", text("op")},
                            {"mode", text("mode")},
                            {"backend", text("backend")},
                            {"params", map_of({{"type", {"boolean", "number", "string"}}})},
                            {"inputs", {{"type", "object"}}},
                            {"seed", count("seed of the generator")},
                            {"environment", map_of(text_or_null("value, null: unset"))},
                            {"tags", list_of({{"type", "string"}})},
                            {"tolerance", map_of(ref("number"))},
                            {"runs", list_of(ref("run"))},
                            {"error_over_limit", {{"oneOf", json::array({ref("number"), {{"type", "null"}}})}}},
                            {"time_s", seconds({"inputs", "device", "reference", "comparison", "yardsticks"})}});
  definition["properties"]["reproduce"] = text("command that runs this case alone");
  definition["properties"]["xfail"] = object({{"reason", text("why it is known to fail")}, {"expires", text("date")}});
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
              {"time_s", seconds({"wall", "inputs", "device", "reference", "yardsticks", "comparison"})},
              {"summary", summary_definition()},
              {"cases", {{"type", "array"}}}});
  schema["properties"]["brief"] = flag("cases have their essential members only; absent: false");
  schema["properties"]["notes"] =
      list_of(text("what happened beside the cases: a worker that was replaced between two"));
  schema["properties"]["override_effect"] = override_definition();
  schema["properties"]["library_changes"] = library_changes_definition();
  schema["if"] = {{"properties", {{"brief", {{"const", true}}}}}, {"required", {"brief"}}};
  schema["then"] = {{"properties", {{"cases", list_of(ref("brief_case"))}}}};
  schema["else"] = {{"properties", {{"cases", list_of(ref("case"))}}}};
  schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  schema["title"] = "te-numcheck report";
  schema["definitions"] = {
      {"number", number_definition()},        {"status", status_definition()}, {"metrics", metrics_definition()},
      {"output", output_definition()},        {"run", run_definition()},       {"case", case_definition()},
      {"brief_case", brief_case_definition()}};
  return schema;
}

}  // namespace numcheck::report
