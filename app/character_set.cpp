#include "character_set.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/printable.hpp"

namespace numcheck::app {
namespace {

struct Replacement {
  std::uint32_t point;
  std::string_view text;
};

constexpr std::array kReplacements = {
    Replacement{0x2026, "~"},   // ellipsis
    Replacement{0x00B7, "-"},   // middle dot
    Replacement{0x00D7, "x"},   // multiplication sign
    Replacement{0x2013, "-"},   // en dash
    Replacement{0x2014, "-"},   // em dash
    Replacement{0x2192, "->"},  // arrow
    Replacement{0x00B5, "u"},   // micro sign
};

}  // namespace

bool is_utf8_locale(std::string_view lc_all, std::string_view lc_ctype, std::string_view lang) noexcept {
  const std::string_view locale = !lc_all.empty() ? lc_all : !lc_ctype.empty() ? lc_ctype : lang;
  const auto same = [](char left, char right) { return (left >= 'A' && left <= 'Z' ? left + 32 : left) == right; };
  const auto has = [&](std::string_view codeset) { return !std::ranges::search(locale, codeset, same).empty(); };
  return has("utf-8") || has("utf8");
}

std::string in_ascii(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = core::utf8_length(text, at);
    if (length < 2) {
      const char c = text[at++];
      out += length == 1 ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      continue;
    }
    const std::uint32_t point = core::code_point(text.substr(at, length));
    const auto* known = std::ranges::find(kReplacements, point, &Replacement::point);
    out += known != kReplacements.end() ? std::string(known->text) : fmt::format("\\u{{{:x}}}", point);
    at += length;
  }
  return out;
}

}  // namespace numcheck::app
