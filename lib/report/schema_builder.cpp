#include "report/schema_builder.hpp"

#include <utility>

namespace numcheck::report::schema {

using nlohmann::json;

json ref(const std::string& name) {
  return {{"$ref", "#/definitions/" + name}};
}

json text(const char* description) {
  return {{"type", "string"}, {"description", description}};
}

json count(const char* description) {
  return {{"type", "integer"}, {"minimum", 0}, {"description", description}};
}

json flag(const char* description) {
  return {{"type", "boolean"}, {"description", description}};
}

json text_or_null(const char* description) {
  return {{"type", {"string", "null"}}, {"description", description}};
}

json real(const char* description) {
  return described(ref("number"), description);
}

json real_or_null(const char* description) {
  return {{"description", description}, {"anyOf", json::array({{{"type", "null"}}, ref("number")})}};
}

json number_definition() {
  return {
      {"description", "a number; JSON has no NaN and no infinities, so those are written by name"},
      {"oneOf", json::array({{{"type", "number"}}, {{"type", "string"}, {"enum", {"NaN", "Infinity", "-Infinity"}}}})}};
}

json digest(const char* description) {
  return {{"type", "string"}, {"pattern", "^[0-9a-f]{32}$"}, {"description", description}};
}

json described(json rule, const char* description) {
  if (rule.contains("$ref")) {
    return {{"description", description}, {"allOf", json::array({std::move(rule)})}};
  }
  rule["description"] = description;
  return rule;
}

json texts(const char* description) {
  return described(list_of({{"type", "string"}}), description);
}

json text_map(const char* description) {
  return described(map_of({{"type", "string"}}), description);
}

json word(json words, const char* description) {
  return {{"enum", std::move(words)}, {"description", description}};
}

json object(json properties) {
  json required = json::array();
  for (const auto& item : properties.items()) {
    required.push_back(item.key());
  }
  return {{"type", "object"}, {"required", std::move(required)}, {"properties", std::move(properties)}};
}

json map_of(json value) {
  return {{"type", "object"}, {"additionalProperties", std::move(value)}};
}

json list_of(json item) {
  json list = {{"type", "array"}};
  if (const auto doc = item.find("description"); doc != item.end() && !item.contains("properties")) {
    list["description"] = *doc;
    item.erase("description");
  }
  list["items"] = std::move(item);
  return list;
}

}  // namespace numcheck::report::schema
