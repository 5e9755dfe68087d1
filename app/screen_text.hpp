// The last filter for text on its way to a terminal or to the log of a CI service.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::app {

/// Lines that are safe to show. Code that composes a line makes its parts printable (core::printable), because only it
/// knows which newlines are intended; this passes only newlines, printable text and, with `colour`, the colours of
/// report::views::paint. If a CI service would take a line for a command ("::error::" at its beginning, "##[" anywhere),
/// the command is escaped.
[[nodiscard]] std::string screen_text(std::string_view text, bool colour);

/// What stands for a piece of JSON in ASCII on standard output: the same value. Pieces do not end within texts.
[[nodiscard]] std::string stdout_text(std::string json);

/// JSON for standard output: the same value as in a file, in printable ASCII. `indent` is -1 for a single line.
[[nodiscard]] std::string stdout_json(const nlohmann::json& value, int indent);

}  // namespace numcheck::app
