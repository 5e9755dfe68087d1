// How the console view writes numbers, times and names.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "report/text_table.hpp"

namespace numcheck::report {

/// A number of the record under an fmt specification such as ".2e"; NaN and infinities by name.
[[nodiscard]] std::string short_number(const nlohmann::json& json, std::string_view specification);

/// An error/limit ratio: "0.31", "5.92e+04".
[[nodiscard]] std::string ratio_text(const nlohmann::json& json);

/// "12.3 us", "4.1 ms", "41 s", "3 min 20 s"; "-" for zero.
[[nodiscard]] std::string human_time(double seconds);

/// Parameters, inputs and environment of an identifier, without op, mode and backend.
[[nodiscard]] std::string parameters_of(std::string_view id);

[[nodiscard]] Colour status_colour(std::string_view status) noexcept;

}  // namespace numcheck::report
