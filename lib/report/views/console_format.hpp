// How the console view formats times, identifiers and statuses.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "report/views/text_table.hpp"

namespace numcheck::report::views {

/// "12.3 us", "4.1 ms", "41 s", "3 min 20 s"; "-" for zero.
[[nodiscard]] std::string human_time(double seconds);

/// Parameters, inputs and environment of an identifier, without op, mode and backend.
[[nodiscard]] std::string parameters_of(std::string_view id);

/// A margin in a table: "0.31"; "-" if nothing was judged; if it is infinite, the gate without a ratio that failed.
[[nodiscard]] std::string margin_text(const std::optional<double>& margin, std::string_view without_ratio);

/// What is said wherever results of a simulated device are shown.
[[nodiscard]] std::string notice_of_simulated(int sm);

/// "FAIL" for "fail".
[[nodiscard]] std::string upper(std::string_view word);

/// The shortest distinct digests of cases.
[[nodiscard]] std::vector<std::string> digests_of(const nlohmann::json& cases);

[[nodiscard]] Colour status_colour(std::string_view status) noexcept;

}  // namespace numcheck::report::views
