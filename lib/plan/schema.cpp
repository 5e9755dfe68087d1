// The plan language as JSON Schema (draft-07), from the same descriptors as the decoder: for editors and for CI.
#include <algorithm>
#include <cmath>
#include <string>

#include <nlohmann/json.hpp>

#include "plan/plan.hpp"
#include "plan/settings.hpp"

namespace numcheck::plan {
namespace {

using nlohmann::json;

json reference(std::string_view name) {
  return {{"$ref", "#/definitions/" + std::string(name)}};
}

json strings(const std::vector<std::string_view>& values) {
  json list = json::array();
  for (const std::string_view value : values) {
    list.push_back(std::string(value));
  }
  return list;
}

/// An object with these properties, "$comment", and nothing else.
json closed_object(json properties, std::string_view description = {}) {
  properties["$comment"] = json::object();
  json schema = {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!description.empty()) {
    schema["description"] = std::string(description);
  }
  return schema;
}

json non_empty_list(json items) {
  return {{"type", "array"}, {"items", std::move(items)}, {"minItems", 1}};
}

json tag() {
  return {{"type", "string"}, {"pattern", "^[A-Za-z0-9_.:+-]{1,64}$"}};
}

/// The value, or a list of them: an axis.
json axis(const json& value) {
  return {{"anyOf", {value, non_empty_list(value)}}};
}

/// Infinity is written as text, and only if it is in the range.
json number(double minimum, double maximum) {
  json any = json::array();
  json finite = {{"type", "number"}};
  if (std::isfinite(minimum)) {
    finite["minimum"] = minimum;
  } else {
    any.push_back({{"const", "-inf"}});
  }
  if (std::isfinite(maximum)) {
    finite["maximum"] = maximum;
  } else {
    any.push_back({{"const", "inf"}});
  }
  if (any.empty()) {
    return finite;
  }
  any.push_back(std::move(finite));
  return {{"anyOf", std::move(any)}};
}

/// One value of a field.
json scalar(const op::Field& field) {
  switch (field.kind) {
    case op::FieldKind::boolean:
      return {{"type", "boolean"}};
    case op::FieldKind::integer:
      return {{"type", "integer"},
              {"minimum", static_cast<std::int64_t>(field.minimum)},
              {"maximum", static_cast<std::int64_t>(field.maximum)}};
    case op::FieldKind::number:
      return number(field.minimum, field.maximum);
    case op::FieldKind::choice:
      return {{"enum", strings(field.choices)}};
  }
  return json::object();
}

json fallback_of(const op::Field& field) {
  return std::visit([](const auto& value) { return json(value); }, field.fallback);
}

json described(json schema, const op::Field& field) {
  schema["description"] = std::string(field.doc);
  if (!field.required) {
    schema["default"] = fallback_of(field);
  }
  return schema;
}

/// The values that a parameter of a case may run through.
json parameter_axis(const op::Field& field) {
  json value = scalar(field);
  if (field.kind == op::FieldKind::integer) {
    value = {{"anyOf", {std::move(value), reference("integer_range"), reference("pow2_range")}}};
  } else if (field.kind == op::FieldKind::number) {
    value = {{"anyOf", {std::move(value), reference("number_range"), reference("pow2_range")}}};
  }
  return described(axis(value), field);
}

json params_of(const op::Op& op) {
  json properties = json::object();
  for (const op::Field& field : op.fields()) {
    properties[std::string(field.name)] = parameter_axis(field);
  }
  return closed_object(std::move(properties),
                       std::string("Parameters of ") + std::string(op.name) + ": " + std::string(op.summary));
}

json ranges(const char* type) {
  json schema = closed_object({{"from", {{"type", type}}}, {"to", {{"type", type}}}, {"step", {{"type", type}}}},
                              "from, from + step, ... up to and including to; step is 1 unless given");
  schema["required"] = {"from", "to"};
  return schema;
}

json pow2_range() {
  json schema =
      closed_object({{"pow2", {{"type", "array"}, {"items", {{"type", "integer"}}}, {"minItems", 2}, {"maxItems", 2}}}},
                    "2^a, 2^(a+1), ... 2^b");
  schema["required"] = {"pow2"};
  return schema;
}

/// One distribution with its parameters; a missing "distribution" means "normal".
json distribution_of(const data::DistributionInfo& info, bool with_ports) {
  json properties = {{"distribution", {{"const", std::string(info.name)}}}};
  json required = json::array();
  if (info.name != "normal") {
    required.push_back("distribution");
  }
  for (const op::Field& field : info.fields()) {
    properties[std::string(field.name)] = described(scalar(field), field);
    if (field.required) {
      required.push_back(std::string(field.name));
    }
  }
  json schema = closed_object(std::move(properties), info.doc);
  if (!required.empty()) {
    schema["required"] = std::move(required);
  }
  if (with_ports) {
    schema["additionalProperties"] = reference("distribution");
  }
  return schema;
}

json distributions(bool with_ports) {
  json any = json::array();
  for (const data::DistributionInfo& info : data::all_distributions()) {
    any.push_back(distribution_of(info, with_ports));
  }
  return {{"anyOf", std::move(any)}};
}

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
  json top = closed_object({{"top", {{"type", "integer"}, {"minimum", 1}, {"maximum", kMaxTopAlgorithms}}}});
  top["required"] = {"top"};
  return {{"anyOf", {{{"enum", {"heuristic", "all"}}}, std::move(top)}},
          {"description", "Which of the backend's algorithms run, each as one run of the case"}};
}

json tolerance() {
  const json limit = number(0, kMaxToleranceLimit);
  json allclose = closed_object({{"rtol", limit}, {"atol", limit}}, "|got - expected| <= atol + rtol |expected|");
  allclose["required"] = {"rtol", "atol"};
  return {
      {"anyOf",
       {{{"const", "default"}}, closed_object({{"allclose", std::move(allclose)}, {"ulp", limit}, {"rel_l2", limit}})}},
      {"description", "Gates in addition to those of the error model"}};
}

/// A value, {"from", "to"} with at least one end, or a list of them.
json ends(const char* pattern, const char* description) {
  const json end = {{"type", "string"}, {"pattern", pattern}};
  json range = closed_object({{"from", end}, {"to", end}}, "Both ends are inclusive; a missing end is open");
  range["anyOf"] = {{{"required", {"from"}}}, {{"required", {"to"}}}};
  json schema = axis({{"anyOf", {end, std::move(range)}}});
  schema["description"] = description;
  return schema;
}

json xfail(json match, const Vocabulary& vocabulary) {
  json libraries = json::object();
  for (const std::string_view library : vocabulary.libraries) {
    libraries[std::string(library)] = reference("versions");
  }
  libraries = closed_object(std::move(libraries), "Versions that have the issue, by library");
  libraries["minProperties"] = 1;
  match["properties"] = {{"architecture", ends("^sm_[0-9]{2,3}$", "Architectures that have the issue")},
                         {"libraries", std::move(libraries)}};
  json entry = closed_object({{"match", std::move(match)},
                              {"cause",
                               {{"type", "string"},
                                {"minLength", 1},
                                {"description", "Only failures with this cause, as reports name it, are known"}}},
                              {"reason", {{"type", "string"}, {"pattern", "[^ \\t\\n]"}}},
                              {"expires", {{"type", "string"}, {"pattern", "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}}}},
                             "A known failure");
  entry["required"] = {"reason"};
  return {{"type", "array"}, {"items", std::move(entry)}};
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
  backends.push_back("auto");
  std::ranges::sort(backends);  // the published copy must not depend on the order of the catalog
  const json match = {
      {"type", "object"},
      {"description", "Fields and the value, range or list of values that they match; a range is {\"from\", \"to\"}"}};
  return {
      {"op", {{"enum", std::move(ops)}}},
      {"params", {{"type", "object"}}},
      {"mode", axis({{"enum", std::move(modes)}})},
      {"backend", axis({{"enum", strings(backends)}})},
      {"inputs", axis(reference("inputs"))},
      {"environment", axis(reference("environment"))},
      {"seed", axis(reference("seed"))},
      {"algorithms", algorithms()},
      {"tolerance", tolerance()},
      {"zip", {{"type", "array"}, {"items", {{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 2}}}}},
      {"exclude", {{"type", "array"}, {"items", match}}},
      {"xfail", xfail(match, vocabulary)},
      {"tags", {{"type", "array"}, {"items", tag()}}},
      {"timeout_s", {{"type", "number"}, {"minimum", 0.001}, {"maximum", 86400}}},
      {"select",
       {{"enum", {"all", "new_configurations"}},
        {"description", "new_configurations: only cases that show a kernel that no earlier case shows"}}}};
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

}  // namespace

json plan_schema(const Vocabulary& vocabulary) {
  json definitions = {{"integer_range", ranges("integer")},
                      {"number_range", ranges("number")},
                      {"pow2_range", pow2_range()},
                      {"distribution", distributions(false)},
                      {"inputs", distributions(true)},
                      {"environment", environment()},
                      {"versions", ends("^[0-9]+([.][0-9]+){0,3}$", "Versions; 13.1 stands for every 13.1.x")},
                      {"seed", {{"type", "integer"}, {"minimum", 0}, {"maximum", UINT64_MAX}}}};
  json one_case = case_schema(vocabulary, definitions);
  definitions["case"] = std::move(one_case);
  const json file_name = {{"type", "string"}, {"minLength", 1}};
  json some = closed_object({{"file", file_name}, {"tags", non_empty_list(tag())}},
                            "The cases of another plan that have one of these tags");
  some["required"] = {"file"};
  json schema = closed_object({{"$schema", {{"type", "string"}}},
                               {"version", {{"const", 1}}},
                               {"name", {{"type", "string"}, {"minLength", 1}, {"maxLength", 200}}},
                               {"description", {{"type", "string"}}},
                               {"seed", reference("seed")},
                               {"extends", axis(file_name)},
                               {"include", axis(json{{"anyOf", {file_name, some}}})},
                               {"defaults", reference("case")},
                               {"cases", non_empty_list(reference("case"))}},
                              "Cases that te-numcheck runs, with their sweeps");
  schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  schema["title"] = "te-numcheck plan, version 1";
  schema["required"] = {"version"};
  schema["definitions"] = std::move(definitions);
  return schema;
}

}  // namespace numcheck::plan
