// Numbers in the record. The JSON library silently writes NaN and infinities as null; here they are written by name.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// A finite number as JSON number (shortest form that round-trips), otherwise the string "NaN", "Infinity" or
/// "-Infinity".
[[nodiscard]] nlohmann::json number(double value);

/// The value that number() wrote; NaN for anything else.
[[nodiscard]] double number_value(const nlohmann::json& json);

/// A number of the record, formatted with an fmt specification such as ".2e"; NaN and infinities by name.
[[nodiscard]] std::string short_number(const nlohmann::json& json, std::string_view specification);

/// An error/limit ratio: "0.31", "5.92e+04"; "no ratio" if a gate failed that allows nothing.
[[nodiscard]] std::string ratio_text(const nlohmann::json& json);

}  // namespace numcheck::report
