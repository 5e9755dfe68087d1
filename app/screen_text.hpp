// The last look at text before a terminal or the log of a CI service gets it.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::app {

/// Lines as they may be shown. Who composes a line makes printable what he puts into it (core::printable), because only
/// he knows which line ends are his; here nothing passes but line ends, printable text and, with `colour`, the colours
/// of report::views::paint. A line that a CI service would take for a command ("::error::" at its beginning, "##[" anywhere)
/// gets an escape in its place.
[[nodiscard]] std::string screen_text(std::string_view text, bool colour);

/// JSON for standard output: the same value as in a file, written in printable ASCII. `indent` is -1 for one line.
[[nodiscard]] std::string stdout_json(const nlohmann::json& value, int indent);

}  // namespace numcheck::app
