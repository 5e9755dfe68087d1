// Objects of the record as lists of members: what is written and what the schema says come from one list.
#pragma once

#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/number.hpp"
#include "report/schema_words.hpp"

namespace numcheck::report {

/// A member of the JSON object that a T becomes.
template <class T>
struct Member {
  const char* name;
  nlohmann::json rule;                ///< what the schema says of it
  nlohmann::json (*value)(const T&);  ///< what is written
};

template <class T>
using Members = std::vector<Member<T>>;

/// A field as it is written: numbers by number(), all else by the JSON library.
template <auto kField, class T>
[[nodiscard]] nlohmann::json at(const T& source) {
  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(source.*kField)>, double>) {
    return number(source.*kField);
  } else {
    return source.*kField;
  }
}

/// The object of a T.
template <class T>
[[nodiscard]] nlohmann::json object_of(const Members<T>& members, const T& source) {
  nlohmann::json object = nlohmann::json::object();
  for (const Member<T>& member : members) {
    object[member.name] = member.value(source);
  }
  return object;
}

/// A list of objects.
template <class T>
[[nodiscard]] nlohmann::json list_of(const Members<T>& members, const std::vector<T>& sources) {
  nlohmann::json list = nlohmann::json::array();
  for (const T& source : sources) {
    list.push_back(object_of(members, source));
  }
  return list;
}

/// The properties of that object by name, for a schema that adds some.
template <class T>
[[nodiscard]] nlohmann::json properties_of(const Members<T>& members) {
  nlohmann::json properties = nlohmann::json::object();
  for (const Member<T>& member : members) {
    properties[member.name] = member.rule;
  }
  return properties;
}

/// The schema of that object: every member is required.
template <class T>
[[nodiscard]] nlohmann::json rule_of(const Members<T>& members) {
  return schema::object(properties_of(members));
}

}  // namespace numcheck::report
