// Text and pieces of markup that all sections of the HTML view share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report::views {

/// Text as HTML shows it, also inside attributes: control characters and direction marks become visible escapes.
[[nodiscard]] std::string html_text(std::string_view text);

/// JSON that may stand inside a script element.
[[nodiscard]] std::string script_json(const nlohmann::json& value);

/// The text of a member; empty if there is none.
[[nodiscard]] std::string text_at(const nlohmann::json& object, const char* member);

/// A member that is a list or an object; an empty object if there is none.
[[nodiscard]] const nlohmann::json& part_at(const nlohmann::json& object, const char* member);

/// A status as a coloured label.
[[nodiscard]] std::string pill(std::string_view status);

/// "<h2 id=...>title</h2>".
[[nodiscard]] std::string heading(std::string_view id, std::string_view title);

/// A table of cells that are markup already. Columns whose head starts with ">" have numbers, set flush right.
[[nodiscard]] std::string html_table(const std::vector<std::string>& head,
                                     const std::vector<std::vector<std::string>>& rows);

/// "1.2 s", "3.4 ms", "5.6 µs".
[[nodiscard]] std::string seconds_text(double seconds);

/// "1 case", "2 cases".
[[nodiscard]] std::string cases_text(std::size_t count);

}  // namespace numcheck::report::views
