// Text that others wrote, as a terminal or a log may get it.
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

/// One line that shows everything in `text`. What moves a cursor, reorders or hides text becomes a visible escape:
/// control characters (\n, \t, \r, \x1b, \u{9b}), marks of direction, separators of lines, invisible and tag characters
/// and noncharacters (\u{202e}), and bytes that are no UTF-8 (\xff). All else stays. A printable text stays as it is.
[[nodiscard]] std::string printable(std::string_view text);

/// The same, cut to `max_characters` code points of the result; a cut one ends with an ellipsis, and no escape is torn.
[[nodiscard]] std::string printable(std::string_view text, std::size_t max_characters);

/// The same, cut to `max_bytes` of the result, before the "..." that then follows.
[[nodiscard]] std::string printable_bytes(std::string_view text, std::size_t max_bytes);

/// Whether printable() would change nothing.
[[nodiscard]] bool is_printable(std::string_view text) noexcept;

}  // namespace numcheck::core
