#include "plan/schema_parts.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "data/distribution.hpp"
#include "plan/case_json.hpp"

namespace numcheck::plan::schema {
namespace {

using nlohmann::json;

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
      return field.choices.empty() ? json{{"type", {"string", "integer"}}} : json{{"enum", strings(field.choices)}};
  }
  return json::object();
}

json of_field(json schema, const op::Field& field) {
  schema["description"] = std::string(field.doc);
  if (!field.required) {
    schema["default"] = value_to_json(field.fallback);
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
  return of_field(axis(value), field);
}

/// One distribution with its parameters; a missing "distribution" means "normal".
json distribution_of(const data::DistributionInfo& info, bool with_ports) {
  json properties = {{"distribution", {{"const", std::string(info.name)}, {"description", info.doc}}}};
  json required = json::array();
  if (info.name != "normal") {
    required.push_back("distribution");
  }
  for (const op::Field& field : info.fields()) {
    properties[std::string(field.name)] = of_field(scalar(field), field);
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

}  // namespace

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

json described(json rule, std::string_view description) {
  if (rule.contains("$ref")) {
    return {{"description", description}, {"allOf", json::array({std::move(rule)})}};
  }
  rule["description"] = description;
  return rule;
}

json described(json rule, std::string_view description, json fallback) {
  json schema = described(std::move(rule), description);
  schema["default"] = std::move(fallback);
  return schema;
}

json closed_object(json properties, std::string_view description) {
  properties["$comment"] = {{"description", "A note for readers, of any type; ignored"}};
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

json axis(const json& value) {
  return {{"anyOf", {value, non_empty_list(value)}}};
}

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

json params_of(const op::Op& op) {
  json properties = json::object();
  for (const op::Field& field : op.fields()) {
    properties[std::string(field.name)] = parameter_axis(field);
  }
  return closed_object(std::move(properties),
                       std::string("Parameters of ") + std::string(op.name) + ": " + std::string(op.summary));
}

json ranges(const char* type) {
  const json value = {{"type", type}};
  json schema = closed_object({{"from", described(value, "The first value")},
                               {"to", described(value, "The last value, if a number of steps leads there")},
                               {"step", described(value, "What is added each time; may be negative, but not 0", 1)}},
                              "from, from + step, ... up to and including to");
  schema["required"] = {"from", "to"};
  return schema;
}

json pow2_range() {
  json schema = closed_object({{"pow2",
                                {{"type", "array"},
                                 {"items", {{"type", "integer"}}},
                                 {"minItems", 2},
                                 {"maxItems", 2},
                                 {"description", "The first and the last exponent"},
                                 {"examples", json::array({{5, 8}})}}}},
                              "Powers of two: [a, b] is 2^a, 2^(a+1), ... 2^b");
  schema["required"] = {"pow2"};
  return schema;
}

json distributions(bool with_ports) {
  json any = json::array();
  for (const data::DistributionInfo& info : data::all_distributions()) {
    any.push_back(distribution_of(info, with_ports));
  }
  return {{"anyOf", std::move(any)}};
}

}  // namespace numcheck::plan::schema
