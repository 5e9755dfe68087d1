// The manual page, from the same tables as --help.
#pragma once

#include <string>
#include <string_view>

#include "cli_forward.hpp"

namespace numcheck::app {

/// te-numcheck(1) in troff's man macros, in ASCII: every command with its options and examples, exit codes, environment
/// variables and files.
[[nodiscard]] std::string manual_page(const CLI::App& cli);

/// Text as troff shows it literally: no character is taken for a request, an escape or a typographic hyphen.
[[nodiscard]] std::string troff_text(std::string_view text);

}  // namespace numcheck::app
