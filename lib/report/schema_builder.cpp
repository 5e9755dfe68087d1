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
  return {{"$comment", description}, {"allOf", json::array({ref("number")})}};
}

json digest() {
  return {{"type", "string"}, {"pattern", "^[0-9a-f]{32}$"}};
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
  return {{"type", "array"}, {"items", std::move(item)}};
}

}  // namespace numcheck::report::schema
