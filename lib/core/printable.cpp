#include "core/printable.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace numcheck::core {
namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// Unicode's Cc, the format characters (Cf) that reorder, join or hide text, and letters that are invisible.
// Variation selectors stay: they choose between forms of a visible character.
constexpr std::array kHidden = {
    Range{0x0000, 0x001F},    // C0 controls
    Range{0x007F, 0x009F},    // DEL and C1 controls
    Range{0x00AD, 0x00AD},    // soft hyphen
    Range{0x034F, 0x034F},    // combining grapheme joiner
    Range{0x061C, 0x061C},    // Arabic letter mark
    Range{0x115F, 0x1160},    // Hangul fillers
    Range{0x17B4, 0x17B5},    // Khmer inherent vowels
    Range{0x180E, 0x180E},    // Mongolian vowel separator
    Range{0x200B, 0x200F},    // zero-width characters, direction marks
    Range{0x2028, 0x202E},    // line and paragraph separators, direction embeddings and overrides
    Range{0x2060, 0x206F},    // word joiner, invisible operators, isolates
    Range{0x3164, 0x3164},    // Hangul filler
    Range{0xFDD0, 0xFDEF},    // noncharacters
    Range{0xFEFF, 0xFEFF},    // byte order mark
    Range{0xFFA0, 0xFFA0},    // halfwidth Hangul filler
    Range{0xFFF9, 0xFFFB},    // interlinear annotation
    Range{0x13430, 0x1343F},  // hieroglyph format controls
    Range{0x1BCA0, 0x1BCA3},  // shorthand format controls
    Range{0x1D173, 0x1D17A},  // musical format controls
    Range{0xE0000, 0xE0FFF},  // tags
};

bool is_hidden(std::uint32_t point) noexcept {
  if (point >= 0x20 && point < 0x7F) {
    return false;
  }
  const bool noncharacter = (point & 0xFFFEU) == 0xFFFEU;
  return noncharacter ||
         std::ranges::any_of(kHidden, [point](const Range& r) { return point >= r.first && point <= r.last; });
}

std::string escape_of(std::uint32_t point) {
  switch (point) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    default:
      return point < 0x80 ? fmt::format("\\x{:02x}", point) : fmt::format("\\u{{{:x}}}", point);
  }
}

/// What is shown for the text at some offset, and how many of its bytes that stands for.
struct Shown {
  std::string text;
  std::size_t bytes = 0;
};

Shown shown_at(std::string_view text, std::size_t offset) {
  const std::size_t length = utf8_length(text, offset);
  if (length == 0) {
    return {fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(text[offset]))), 1};
  }
  const std::string_view sequence = text.substr(offset, length);
  const std::uint32_t point = code_point(sequence);
  return {is_hidden(point) ? escape_of(point) : std::string(sequence), length};
}

std::size_t characters(std::string_view text) noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t offset) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(text[offset + i])); };
  const unsigned lead = byte(0);
  if (lead < 0x80) {
    return 1;
  }
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || offset + length > text.size()) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) {
      return 0;
    }
  }
  // Overlong forms, surrogates and values beyond U+10FFFF (RFC 3629 section 4).
  const unsigned second = byte(1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) || (lead == 0xF0 && second < 0x90) ||
      (lead == 0xF4 && second > 0x8F)) {
    return 0;
  }
  return length;
}

std::uint32_t code_point(std::string_view sequence) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(sequence[i])); };
  switch (sequence.size()) {
    case 2:
      return (byte(0) & 0x1FU) << 6 | (byte(1) & 0x3FU);
    case 3:
      return (byte(0) & 0x0FU) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU);
    case 4:
      return (byte(0) & 0x07U) << 18 | (byte(1) & 0x3FU) << 12 | (byte(2) & 0x3FU) << 6 | (byte(3) & 0x3FU);
    default:
      return byte(0);
  }
}

bool is_printable(std::string_view text) noexcept {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~'; };  // nearly all texts are
  if (std::ranges::all_of(text, is_plain)) {
    return true;
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0 || is_hidden(code_point(text.substr(at, length)))) {
      return false;
    }
    at += length;
  }
  return true;
}

std::string printable(std::string_view text) {
  if (is_printable(text)) {
    return std::string(text);
  }
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Shown shown = shown_at(text, at);
    out += shown.text;
    at += shown.bytes;
  }
  return out;
}

std::string printable(std::string_view text, std::size_t max_characters) {
  std::string out;
  std::size_t used = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Shown shown = shown_at(text, at);
    used += characters(shown.text);
    if (used > max_characters) {
      return out + "\xE2\x80\xA6";
    }
    out += shown.text;
    at += shown.bytes;
  }
  return out;
}

std::string printable_bytes(std::string_view text, std::size_t max_bytes) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Shown shown = shown_at(text, at);
    if (out.size() + shown.text.size() > max_bytes) {
      return out + "...";
    }
    out += shown.text;
    at += shown.bytes;
  }
  return out;
}

}  // namespace numcheck::core
