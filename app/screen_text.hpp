// The last check of text before a terminal or the log of a CI service gets it.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::app {

/// Lines in a form that may be shown. Whoever composes a line makes its parts printable (core::printable), because only
/// the author knows which newlines are intended; here nothing passes but newlines, printable text and, with `colour`,
/// the colours of report::views::paint. In a line that a CI service would take for a command ("::error::" at its
/// beginning, "##[" anywhere) the command is escaped.
[[nodiscard]] std::string screen_text(std::string_view text, bool colour);

/// JSON for standard output: the same value as in a file, in printable ASCII. `indent` is -1 for a single line.
[[nodiscard]] std::string stdout_json(const nlohmann::json& value, int indent);

}  // namespace numcheck::app
