// Numbers in the record. The JSON library writes NaN and infinities as null without a word; here they keep their names.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// A finite number as JSON number (shortest form that reads back), else the string "NaN", "Infinity" or "-Infinity".
[[nodiscard]] nlohmann::json number(double value);

/// The value that number() wrote; NaN for anything else.
[[nodiscard]] double number_value(const nlohmann::json& json);

}  // namespace numcheck::report
