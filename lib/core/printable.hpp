// Text that others wrote, made safe for a terminal or a log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace numcheck::core {

/// Bytes of the well-formed UTF-8 sequence at `offset` (RFC 3629), or 0.
[[nodiscard]] std::size_t utf8_length(std::string_view text, std::size_t offset) noexcept;

/// The code point of a well-formed sequence.
[[nodiscard]] std::uint32_t code_point(std::string_view sequence) noexcept;

/// One line that shows everything in `text`. Whatever moves a cursor, reorders or hides text becomes a visible escape:
/// control characters (\n, \t, \r, \x1b, \u{9b}), direction marks, line separators, invisible and tag characters and
/// noncharacters (\u{202e}), and bytes that are not UTF-8 (\xff). Everything else is unchanged.
[[nodiscard]] std::string printable(std::string_view text);

/// The same, cut to `max_characters` code points of the result; if cut, it ends with an ellipsis, never inside an
/// escape.
[[nodiscard]] std::string printable(std::string_view text, std::size_t max_characters);

/// The same, cut to `max_bytes` of the result, not counting the "..." that then follows.
[[nodiscard]] std::string printable_bytes(std::string_view text, std::size_t max_bytes);

/// Whether printable() would change nothing.
[[nodiscard]] bool is_printable(std::string_view text) noexcept;

}  // namespace numcheck::core
