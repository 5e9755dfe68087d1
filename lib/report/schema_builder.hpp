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
/// 32 hexadecimal digits.
[[nodiscard]] nlohmann::json digest();
/// An object whose listed properties are all required.
[[nodiscard]] nlohmann::json object(nlohmann::json properties);
[[nodiscard]] nlohmann::json map_of(nlohmann::json value);
[[nodiscard]] nlohmann::json list_of(nlohmann::json item);

}  // namespace numcheck::report::schema
