// How the console view formats times, identifiers and statuses.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "report/views/text_table.hpp"

namespace numcheck::report::views {

/// "12.3 us", "4.1 ms", "41 s", "3 min 20 s"; "-" for zero.
[[nodiscard]] std::string human_time(double seconds);

/// Parameters, inputs and environment of an identifier, without op, mode and backend.
[[nodiscard]] std::string parameters_of(std::string_view id);

[[nodiscard]] Colour status_colour(std::string_view status) noexcept;

}  // namespace numcheck::report::views
