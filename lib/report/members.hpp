// Objects of the record as lists of members, from which both the JSON and its schema are generated.
#pragma once

#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/number.hpp"
#include "report/schema_builder.hpp"

namespace numcheck::report {

/// A member of T's JSON object.
template <class T>
struct Member {
  const char* name;
  nlohmann::json rule;                ///< its schema
  nlohmann::json (*value)(const T&);  ///< its value
};

template <class T>
using Members = std::vector<Member<T>>;

/// A field's JSON value: doubles through number(), everything else through the JSON library.
template <auto kField, class T>
[[nodiscard]] nlohmann::json at(const T& source) {
  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(source.*kField)>, double>) {
    return number(source.*kField);
  } else {
    return source.*kField;
  }
}

/// The JSON object of a T.
template <class T>
[[nodiscard]] nlohmann::json object_of(const Members<T>& members, const T& source) {
  nlohmann::json object = nlohmann::json::object();
  for (const Member<T>& member : members) {
    object[member.name] = member.value(source);
  }
  return object;
}

/// A JSON array of such objects.
template <class T>
[[nodiscard]] nlohmann::json list_of(const Members<T>& members, const std::vector<T>& sources) {
  nlohmann::json list = nlohmann::json::array();
  for (const T& source : sources) {
    list.push_back(object_of(members, source));
  }
  return list;
}

/// The schema's properties, for schemas that add more.
template <class T>
[[nodiscard]] nlohmann::json properties_of(const Members<T>& members) {
  nlohmann::json properties = nlohmann::json::object();
  for (const Member<T>& member : members) {
    properties[member.name] = member.rule;
  }
  return properties;
}

/// The schema of the object; all members are required.
template <class T>
[[nodiscard]] nlohmann::json rule_of(const Members<T>& members) {
  return schema::object(properties_of(members));
}

}  // namespace numcheck::report
