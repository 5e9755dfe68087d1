// JSON Schema of report.json. Later minor versions may add fields, so unknown ones are allowed everywhere.
#include <string>

#include <nlohmann/json.hpp>

#include "report/comparison.hpp"
#include "report/metric_members.hpp"
#include "report/output_members.hpp"
#include "report/record_members.hpp"
#include "report/report.hpp"
#include "report/result_lines.hpp"
#include "report/schema_builder.hpp"
#include "report/schema_tables.hpp"
#include "report/summary.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using namespace schema;

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

json times_definition() {
  json properties = properties_of(stage_members());
  properties["wall"] = real("from start to end, in s");
  return object(std::move(properties));
}

json case_definition() {
  json properties = {
      {"op", text("op")},
      {"mode", text("mode")},
      {"backend", text("backend")},
      {"params", described(map_of({{"type", {"boolean", "number", "string"}}}), "every parameter of the op")},
      {"inputs", {{"type", "object"}, {"description", "distribution of the inputs"}}},
      {"seed", count("seed of the generator")},
      {"environment", described(map_of(text_or_null("value, null: unset")), "variables that the case sets")}};
  properties.update(properties_of(case_members()));
  json definition = object(std::move(properties));
  definition["properties"]["reproduce"] = text("command that runs this case alone");
  definition["properties"]["algorithms"] = {{"type", {"string", "object"}},
                                            {"description", "\"heuristic\", \"all\" or {\"top\": N}"}};
  definition["properties"].update(known_issue_properties());
  return definition;
}

json machine_definition() {
  json device = object({{"name", text("as the driver names it")},
                        {"sm", count("compute capability, 10 * major + minor")},
                        {"index", count("of the CUDA device, from 0")},
                        {"simulated", flag("modelled on the host: no hardware evidence")},
                        {"uuid", text("identity of the GPU; empty: several, which \"shards\" lists")},
                        {"memory_bytes", count("memory of the device, in bytes")},
                        {"multiprocessors", count("streaming multiprocessors")}});
  device["type"] = {"object", "null"};
  device["description"] = "null if no worker was needed";
  json host = object({{"cpus", count("threads used")},
                      {"isa", text("instruction set of our own loops")},
                      {"blas", text("BLAS of the reference")}});
  host["properties"]["name"] = text("only with --include-host");
  return object({{"device", std::move(device)},
                 {"driver", text_or_null("driver version")},
                 {"libraries", text_map("versions of the libraries, by name")},
                 {"host", described(std::move(host), "the machine without its GPU")}});
}

json shard_definition() {
  json shard = object({{"index", count("0-based")}, {"count", count("shards")}});
  json& more = shard["properties"];
  more["of"] = count("cases of all shards together; only if there are several, like the members below");
  more["places"] = described(list_of(count("0-based")), "where the cases of this report belong among those, in order");
  more["selection"] = text("digest of the digests of all shards' cases, in their order");
  more["verified"] = texts("digests of the kernel configurations that this shard has verified");
  return shard;
}

json settings_definition() {
  json settings = object({{"repeat", count("runs of each algorithm, whose outputs must be identical")},
                          {"inject", text_or_null("fault that was planted on purpose; null: none")},
                          {"inject_cases", texts("cases in which it was planted; none: in all")}});
  settings["properties"]["reference_flops"] =
      real("operations of a product (gemm) above which its reference is a sample; absent in older reports");
  return settings;
}

json contract_definition() {
  json promise = object({{"id", text("identifier of the case")},
                         {"status", text("status of the case; missing: the run has no such case")},
                         {"reason", text("why it did not run")}});
  json contract = object({{"digest", text("of the contract's text, XXH3, 128 bits")},
                          {"promised", count("cases of this plan that the contract says must run")},
                          {"kept", count("of those, cases with a verdict")},
                          {"not_selected", count("of those, cases that were left out on purpose")},
                          {"absent_libraries", texts("libraries that the contract names and the run does not have")},
                          {"broken", described(list_of(std::move(promise)), "the others")}});
  contract["properties"]["derived"] =
      text("from what the contract's promises follow if no run showed them; absent: runs did");
  return contract;
}

/// Of a merged report: what its shards need not share.
json merged_shard_definition() {
  json device = object({{"index", count("of the CUDA device, from 0")}, {"uuid", text("identity of the GPU")}});
  device["type"] = {"object", "null"};
  device["description"] = "null if no worker was needed";
  return object(
      {{"index", count("0-based")},
       {"cases", count("cases of the shard")},
       {"started", text("time at which it began, ISO 8601, UTC")},
       {"wall_s", real("time that it took, in s")},
       {"argv", texts("command line, without the program's name")},
       {"host", {{"type", "object"}, {"description", "its host, as in machine"}}},
       {"device", std::move(device)},
       {"environment", described(map_of(text_or_null("value, null: unset")), "variables that choose devices")}});
}

json summary_definition() {
  json properties = {{"cases", count("cases of the report")}};
  for (const verdict::Status status : verdict::all_statuses()) {
    properties[verdict::status_name(status)] = count("cases that ended so");
  }
  return object(std::move(properties));
}

/// The smallest report that shows a result: a brief one on one case.
json report_example() {
  json example = json::parse(R"({
    "schema": "te-numcheck/report", "brief": true,
    "tool": {"version": "0.1.0", "revision": "cb6d35111619", "dirty": false, "argv": ["run", "first.json"]},
    "plan": {"name": "first", "digest": "8778a5738b2a001c23b782fbda1a7e63", "seed": 0, "expanded": 1, "selected": 1,
             "shard": {"index": 0, "count": 1}},
    "settings": {"inject": null, "inject_cases": [], "reference_flops": 1.5e12, "repeat": 2},
    "machine": {"device": {"name": "simulated sm_90", "sm": 90, "index": 0, "simulated": true, "uuid": "",
                           "memory_bytes": 25276518400, "multiprocessors": 0},
                "driver": null, "libraries": {},
                "host": {"blas": "OpenBLAS 0.3.21 Haswell", "cpus": 2, "isa": "avx512"}},
    "environment": {"NVIDIA_TF32_OVERRIDE": null},
    "started": "2025-01-02T03:04:05Z", "interrupted": false,
    "time_s": {"inputs": 0.0002, "reference": 0.0001, "yardsticks": 0.0001, "device": 0.0, "comparison": 0.002,
               "wall": 0.01},
    "summary": {"cases": 1, "pass": 1, "warn": 0, "fail": 0, "inconclusive": 0, "unsupported": 0, "skipped": 0,
                "error": 0, "crashed": 0, "timeout": 0, "xfail": 0, "xpass": 0},
    "cases": [{"id": "gemm/m=64,n=64,k=128/bf16/sim", "digest": "d6789f3bc9162fa9773dfd2493030229", "status": "pass",
               "runs": [{"implementation": "simulated sm_90, unsplit",
                         "outputs": {"d": {"xxh128": "e6d9b36cbc01fed5e8c72c3b89bb4f5c",
                                           "metrics": {"max_ulp": 0.499969, "rel_l2": 0.00170165},
                                           "criteria": [{"name": "G2 rms", "measured": 0.997077, "limit": 3.0}]}}}]}]
  })");
  example["schema_version"] = kReportSchemaVersion;
  return example;
}

}  // namespace

nlohmann::json report_schema() {
  json schema = object(
      {{"schema", {{"const", kReportSchemaName}, {"description", "what this file is"}}},
       {"schema_version",
        {{"type", "string"},
         {"pattern", "^1\\.[0-9]+\\.[0-9]+$"},
         {"description", "version of the format: major breaks readers, minor adds members"},
         {"examples", {kReportSchemaVersion}}}},
       {"tool", described(object({{"version", text("program version")},
                                  {"revision", text("source revision")},
                                  {"dirty", flag("built from changed sources")},
                                  {"argv", texts("command line, without the program's name")}}),
                          "the program")},
       {"plan", described(object({{"name", text("of the plan; several are joined by +")},
                                  {"digest", text("digest of the merged plan")},
                                  {"seed", count("seed of the generator")},
                                  {"expanded", count("cases of the plan")},
                                  {"selected", count("cases that filters and shard left")},
                                  {"shard", described(shard_definition(), "the part that ran")}}),
                          "the plan")},
       {"machine", described(machine_definition(), "device, driver, libraries, host")},
       {"environment", described(map_of(text_or_null("value, null: unset")),
                                 "every variable that can affect numbers, as set for the run")},
       {"started", text("time at which the run began, ISO 8601, UTC")},
       {"interrupted", flag("stopped before all cases had run")},
       {"time_s", described(times_definition(),
                            "times of the stages summed over all cases, which overlap, and of the whole run; in s")},
       {"summary", described(summary_definition(), "number of cases by status")},
       {"cases", {{"type", "array"}, {"description", "the cases, in plan order"}}}});
  schema["properties"]["brief"] = flag("cases have their essential members only; absent: false");
  schema["properties"]["notes"] = texts("what happened beside the cases: a worker that was replaced between two");
  schema["properties"]["budget"] = described(object({{"limit_s", real("time after which no case was started, in s")},
                                                     {"not_started", count("cases that were left by then")}}),
                                             "of a run with --budget");
  schema["properties"]["contract"] = described(contract_definition(), "what became of the promises of --contract");
  schema["properties"]["gates"] =
      described(object({{"fail_on", described(list_of(ref("status")), "statuses that fail the run as well")}}),
                "options that affect the exit code only; absent: none");
  schema["properties"]["settings"] = described(settings_definition(), "options that affect numbers or verdicts");
  schema["properties"]["shards"] =
      described(list_of(merged_shard_definition()), "of a merged report: what its shards need not share");
  schema["properties"]["override_effect"] =
      described(override_definition(), "what NVIDIA_TF32_OVERRIDE changed, if cases differ in nothing else");
  schema["properties"]["configurations"] =
      described(object({{"asked", count("shapes whose kernels the library was asked for")},
                        {"kept", count("cases that show all of those kernels")},
                        {"offered", count("distinct kernel configurations")},
                        {"verified", count("of those, run and judged")}}),
                "kernel configurations, if cases have \"select\": \"new_configurations\"");
  schema["properties"]["causes"] =
      described(causes_definition(), "what is wrong, with the number of cases that show it");
  schema["properties"]["precision_map"] =
      described(precision_map_definition(), "precision classes that ran, by request and shape");
  schema["properties"]["library_changes"] =
      described(library_changes_definition(), "what differs between several versions of a library that ran");
  schema["properties"]["comparison"] =
      described(comparison_record_definition(), "how the run compares with its baseline, if it has one");
  schema["if"] = {{"properties", {{"brief", {{"const", true}}}}}, {"required", {"brief"}}};
  schema["then"] = {{"properties", {{"cases", list_of(ref("brief_case"))}}}};
  schema["else"] = {{"properties", {{"cases", list_of(ref("case"))}}}};
  schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  schema["$id"] = "https://te-numcheck.invalid/report-1.schema.json";  // a name, not a place
  schema["title"] = "te-numcheck report, version 1";
  schema["examples"] = json::array({report_example()});
  schema["description"] = "The record of a run; readers must ignore members that they do not know";
  schema["definitions"] = {{"number", number_definition()},
                           {"status", status_definition()},
                           {"metrics", metrics_definition()},
                           {"output", output_rule()},
                           {"run", run_rule()},
                           {"case", case_definition()},
                           {"brief_case", brief_case_definition()},
                           {"line", line_rule(schema["properties"])}};
  return schema;
}

}  // namespace numcheck::report
