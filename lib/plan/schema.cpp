// The plan language as JSON Schema (draft-07), from the same descriptors as the decoder: for editors and for CI.
#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "op/mode.hpp"
#include "plan/backend_name.hpp"
#include "plan/plan.hpp"
#include "plan/schema_parts.hpp"
#include "plan/settings.hpp"

namespace numcheck::plan {
namespace {

using nlohmann::json;
using namespace schema;

json environment() {
  json properties = json::object();
  for (const EnvironmentVariable& variable : settable_variables()) {
    properties[std::string(variable.name)] = {{"type", {"string", "null"}},
                                              {"pattern", "^[A-Za-z0-9_.:+-]{0,64}$"},
                                              {"description", std::string(variable.doc)}};
  }
  return closed_object(std::move(properties), "Variables that the case sets (text) or unsets (null)");
}

json algorithms() {
  json top = closed_object({{"top",
                             {{"type", "integer"},
                              {"minimum", 1},
                              {"maximum", kMaxTopAlgorithms},
                              {"description", "How many of the heuristic's choices run, the first ones"}}}});
  top["required"] = {"top"};
  return described(
      {{"anyOf", {{{"enum", {"heuristic", "all"}}}, std::move(top)}}, {"examples", json::array({"all", {{"top", 8}}})}},
      "Which of the backend's algorithms run, each as one run of the case: the heuristic's first choice, all "
      "that it offers, or the first N",
      "heuristic");
}

json statistics() {
  const json limit = number(-kMaxToleranceLimit, kMaxToleranceLimit);
  json limits = closed_object({{"least", described(limit, "The smallest value that passes")},
                               {"most", described(limit, "The largest value that passes")}});
  limits["anyOf"] = {{{"required", {"least"}}}, {{"required", {"most"}}}};
  return described({{"type", "object"},
                    {"additionalProperties", std::move(limits)},
                    {"examples", json::array({{{"sqnr", {{"least", 25}}}, {"underflow", {{"most", 0.01}}}}})}},
                   "Limits of what the op measures besides errors, by its name in the report; explain OP lists them");
}

json tolerance() {
  const json limit = number(0, kMaxToleranceLimit);
  json allclose = closed_object({{"rtol", described(limit, "Relative to the expected value")},
                                 {"atol", described(limit, "Absolute, in units of the output")}},
                                "|got - expected| <= atol + rtol |expected|");
  allclose["required"] = {"rtol", "atol"};
  json own = closed_object(
      {{"allclose", std::move(allclose)},
       {"ulp", described(limit, "Largest error, in units of the last place of the output")},
       {"rel_l2", described(limit, "Frobenius-relative error |e|_2 / |y|_2")},
       {"min_judged",
        described(number(0, 1),
                  "Share of an output's elements that must be judged for it to "
                  "pass; with fewer the case is inconclusive. Without it 0.99; 0 if nothing is to be judged, "
                  "as in an output without elements or without finite numbers")},
       {"statistics", statistics()}});
  return described({{"anyOf", {{{"const", "default"}}, std::move(own)}},
                    {"examples", json::array({{{"ulp", 2}}, {{"rel_l2", 0.01}}})}},
                   "Gates in addition to those of the error model, which no plan can loosen", "default");
}

/// A value, {"from", "to"} with at least one end, or a list of them.
json ends(const char* pattern, const char* description) {
  const json end = {{"type", "string"}, {"pattern", pattern}};
  json range = closed_object({{"from", described(end, "The first one; missing: from the earliest")},
                              {"to", described(end, "The last one; missing: up to the latest")}},
                             "Both ends are inclusive; a missing end is open");
  range["anyOf"] = {{{"required", {"from"}}}, {{"required", {"to"}}}};
  json schema = axis({{"anyOf", {end, std::move(range)}}});
  schema["description"] = description;
  return schema;
}

json xfail(json match, const Vocabulary& vocabulary) {
  json libraries = json::object();
  for (const std::string_view library : vocabulary.libraries) {
    libraries[std::string(library)] = described(reference("versions"), fmt::format("Versions of {}", library));
  }
  libraries = closed_object(std::move(libraries), "Versions that have the issue, by library");
  libraries["minProperties"] = 1;
  match["properties"] = {{"architecture", ends("^sm_[0-9]{2,3}$", "Architectures that have the issue")},
                         {"libraries", std::move(libraries)}};
  json entry = closed_object(
      {{"match", std::move(match)},
       {"cause",
        {{"type", "string"},
         {"minLength", 1},
         {"description", "Only failures with this cause, as reports name it, are known"}}},
       {"error",
        {{"type", "string"},
         {"minLength", 8},
         {"description", "Only errors and crashes whose message contains this text are known"}}},
       {"reason",
        {{"type", "string"},
         {"pattern", "[^ \\t\\n]"},
         {"description", "Why it fails, in a sentence; shown with the case"}}},
       {"link", {{"type", "string"}, {"minLength", 1}, {"description", "Where to read more; shown, never fetched"}}},
       {"expires",
        {{"type", "string"},
         {"pattern", "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
         {"description", "A date, YYYY-MM-DD, after which the entry excuses nothing"},
         {"examples", {"2030-12-31"}}}}},
      "A known failure");
  entry["required"] = {"reason"};
  entry["not"] = {{"required", {"cause", "error"}}};
  return described({{"type", "array"}, {"items", std::move(entry)}},
                   "Failures that are known: such a case does not fail the run, and is reported once it passes",
                   json::array());
}

/// What shapes a sweep, and what else is said about its cases.
json rule_properties(const json& match, const Vocabulary& vocabulary) {
  return {
      {"zip",
       described({{"type", "array"},
                  {"items", {{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 2}}},
                  {"examples", json::array({json::array({{"m", "n"}})})}},
                 "Groups of axes that advance together instead of multiplying; they must have equally many values",
                 json::array())},
      {"exclude",
       described({{"type", "array"},
                  {"items", match},
                  {"examples", json::array({json::array({{{"k", 513}, {"bias", true}}})})}},
                 "Cases of the sweep that are left out: those that match any entry in all its fields", json::array())},
      {"xfail", xfail(match, vocabulary)},
      {"tags", described({{"type", "array"}, {"items", tag()}, {"examples", json::array({{"smoke", "nightly"}})}},
                         "Words by which --tag and \"include\" choose cases; not part of the digest", json::array())},
      {"timeout_s",
       described({{"type", "number"}, {"minimum", kMinTimeout}, {"maximum", kMaxTimeout}},
                 "Time limit of the case, in s, for its run on the device and for its reference each; without "
                 "one, that of --timeout holds")},
      {"select",
       described({{"enum", {"all", "new_configurations"}}},
                 "new_configurations: only cases that show a kernel that no earlier case shows, as the library's "
                 "heuristics tell before the run",
                 "all")}};
}

json case_properties(const Vocabulary& vocabulary) {
  json ops = json::array();
  json modes = json::array();
  for (const op::Op* op : vocabulary.ops) {
    ops.push_back(std::string(op->name));
  }
  for (const op::Mode& mode : op::all_modes()) {
    modes.push_back(std::string(mode.name));
  }
  std::vector<std::string_view> backends = vocabulary.backends;
  backends.push_back(kAutoBackend);
  std::ranges::sort(backends);  // the published copy must not depend on the order of the catalog
  const json match = {
      {"type", "object"},
      {"description", "Fields and the value, range or list of values that they match; a range is {\"from\", \"to\"}"}};
  json properties = {
      {"op", described({{"enum", std::move(ops)}}, "The operation: te-numcheck list ops")},
      {"params", described({{"type", "object"},
                            {"examples", json::array({{{"m", {64, 128}}, {"n", 64}, {"k", {{"pow2", {5, 8}}}}}})}},
                           "Parameters of the op, each a value or an axis: te-numcheck explain OP")},
      {"mode", described(axis({{"enum", std::move(modes)}}),
                         "Number formats of inputs, products and outputs: te-numcheck list modes; a list is an axis")},
      {"backend",
       described(axis({{"enum", strings(backends)}}),
                 "Who computes it: te-numcheck list backends; auto is the op's first one on a GPU, and sim on "
                 "a simulated device; a list is an axis",
                 kAutoBackend)},
      {"inputs",
       described(axis(reference("inputs")),
                 "What the inputs are drawn from, all of them or by name: te-numcheck list distributions; a list "
                 "is an axis",
                 {{"distribution", "normal"}})},
      {"environment",
       described(axis(reference("environment")),
                 "Variables that the case sets or unsets, in a worker process of its own; a list is an axis",
                 json::object())},
      {"seed", described(axis(reference("seed")), "Seed of the inputs in place of the plan's; a list is an axis")},
      {"algorithms", algorithms()},
      {"tolerance", tolerance()}};
  properties.update(rule_properties(match, vocabulary));
  return properties;
}

json case_schema(const Vocabulary& vocabulary, json& definitions) {
  json schema = closed_object(case_properties(vocabulary), "One sweep: lists are axes, axes multiply");
  json rules = json::array();
  for (const op::Op* op : vocabulary.ops) {
    const std::string params = std::string(op->name) + "_params";
    definitions[params] = params_of(*op);
    json modes = axis({{"enum", strings({op->modes.begin(), op->modes.end()})}});
    rules.push_back({{"if", {{"properties", {{"op", {{"const", std::string(op->name)}}}}}, {"required", {"op"}}}},
                     {"then", {{"properties", {{"params", reference(params)}, {"mode", std::move(modes)}}}}}});
  }
  schema["allOf"] = std::move(rules);
  return schema;
}

json example_plans() {
  json one = {{"version", 1},
              {"cases", {{{"op", "gemm"}, {"mode", "bf16"}, {"params", {{"m", 64}, {"n", 64}, {"k", 192}}}}}}};
  json override_axis = json::array();
  for (const json& value : {json(), json("0"), json("1")}) {
    override_axis.push_back({{"NVIDIA_TF32_OVERRIDE", value}});
  }
  json sweep = {{"version", 1},
                {"defaults", {{"op", "gemm"}, {"mode", {"fp32", "tf32"}}, {"environment", std::move(override_axis)}}},
                {"cases", {{{"params", {{"m", {32, 64}}, {"n", 48}, {"k", {{"pow2", {6, 8}}}}}}}}}};
  return json::array({std::move(one), std::move(sweep)});
}

}  // namespace

json plan_schema(const Vocabulary& vocabulary) {
  json definitions = {{"integer_range", ranges("integer")},
                      {"number_range", ranges("number")},
                      {"pow2_range", pow2_range()},
                      {"distribution", distributions(false)},
                      {"inputs", distributions(true)},
                      {"environment", environment()},
                      {"versions", ends("^[0-9]+([.][0-9]+){0,3}$", "Versions; 13.1 stands for every 13.1.x")},
                      {"seed",
                       {{"type", "integer"},
                        {"minimum", 0},
                        {"maximum", UINT64_MAX},
                        {"description", "Seed of the generator that draws the inputs"}}}};
  json one_case = case_schema(vocabulary, definitions);
  definitions["case"] = std::move(one_case);
  const json file_name = {{"type", "string"}, {"minLength", 1}};
  json some = closed_object({{"file", described(file_name, "A plan, relative to this file")},
                             {"tags", described(non_empty_list(tag()), "Cases with one of these tags; missing: all")}},
                            "The cases of another plan that have one of these tags");
  some["required"] = {"file"};
  json schema = closed_object(
      {{"$schema", described({{"type", "string"}}, "This schema, for editors; ignored")},
       {"version", described({{"const", 1}}, "Version of the plan language")},
       {"name", described({{"type", "string"}, {"minLength", 1}, {"maxLength", 200}},
                          "One line that names the plan in reports; without it, the file's name")},
       {"description", described({{"type", "string"}}, "What the plan is for; not part of its digest", "")},
       {"seed", described(reference("seed"), "Seed of the inputs, the same for all cases that name none", 0)},
       {"extends",
        described(axis(file_name),
                  "Plans to start from, relative to this file, merged in order: objects deeply, lists replaced")},
       {"include", described(axis(json{{"anyOf", {file_name, some}}}),
                             "Plans whose cases come before this plan's own, all of them or those with certain tags")},
       {"baseline", described(file_name,
                              "A report that results are compared with, relative to this file; a regression fails the "
                              "run")},
       {"defaults", described(reference("case"), "What every case has that does not say otherwise", json::object())},
       {"cases", described(non_empty_list(reference("case")), "Sweeps, each one or many cases")}},
      "Cases that te-numcheck runs, with their sweeps: te-numcheck explain plan");
  schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  schema["$id"] = "https://te-numcheck.invalid/plan-1.schema.json";  // a name, not a place; editors do not take a URN
  schema["title"] = "te-numcheck plan, version 1";
  schema["examples"] = example_plans();
  schema["required"] = {"version"};
  schema["definitions"] = std::move(definitions);
  return schema;
}

}  // namespace numcheck::plan
