// What a terminal can show.
#pragma once

#include <string>
#include <string_view>

namespace numcheck::app {

/// Whether the locale's codeset is UTF-8, by the values of LC_ALL, LC_CTYPE and LANG, of which the first that is not empty
/// counts. The name decides, not whether this machine has that locale.
[[nodiscard]] bool is_utf8_locale(std::string_view lc_all, std::string_view lc_ctype, std::string_view lang) noexcept;

/// The same text in ASCII, each character in one column as far as possible: "~" for an ellipsis, "-" for a middle dot or
/// a dash, "x" for a multiplication sign; others as \u{e9}.
[[nodiscard]] std::string in_ascii(std::string_view text);

}  // namespace numcheck::app
