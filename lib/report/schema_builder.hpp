// Building blocks of the report's schema.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace numcheck::report::schema {

[[nodiscard]] nlohmann::json ref(const std::string& name);
[[nodiscard]] nlohmann::json text(const char* description);
[[nodiscard]] nlohmann::json count(const char* description);
[[nodiscard]] nlohmann::json flag(const char* description);
[[nodiscard]] nlohmann::json text_or_null(const char* description);
/// A number, or the name of a NaN or infinity.
[[nodiscard]] nlohmann::json real(const char* description);
/// A number, or null.
[[nodiscard]] nlohmann::json real_or_null(const char* description);
/// What real() refers to: "number" of the schema's definitions.
[[nodiscard]] nlohmann::json number_definition();
/// 32 hexadecimal digits.
[[nodiscard]] nlohmann::json digest(const char* description);
/// The rule with a description; a reference keeps it beside itself, because draft-07 ignores what stands in one.
[[nodiscard]] nlohmann::json described(nlohmann::json rule, const char* description);
/// Lists and maps of texts.
[[nodiscard]] nlohmann::json texts(const char* description);
[[nodiscard]] nlohmann::json text_map(const char* description);
/// One of these words.
[[nodiscard]] nlohmann::json word(nlohmann::json words, const char* description);
/// An object whose listed properties are all required.
[[nodiscard]] nlohmann::json object(nlohmann::json properties);
[[nodiscard]] nlohmann::json map_of(nlohmann::json value);
/// A list of such items, described as its items are.
[[nodiscard]] nlohmann::json list_of(nlohmann::json item);

}  // namespace numcheck::report::schema
