#include "screen_text.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "core/printable.hpp"

namespace numcheck::app {
namespace {

/// Blanks beyond ASCII that a CI service strips from the beginning of a line: no-break, ogham, en quad to hair space,
/// narrow no-break, mathematical, ideographic. (Unicode's others are hidden characters, which are already escaped.)
constexpr std::array<std::string_view, 16> kWideBlanks = {
    "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81", "\xE2\x80\x82", "\xE2\x80\x83",
    "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86", "\xE2\x80\x87", "\xE2\x80\x88", "\xE2\x80\x89",
    "\xE2\x80\x8A", "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80"};

std::size_t leading_blanks(std::string_view line) {
  std::size_t at = 0;
  for (;;) {
    const std::string_view rest = line.substr(at);
    const auto* wide = std::ranges::find_if(kWideBlanks, [rest](std::string_view b) { return rest.starts_with(b); });
    if (rest.starts_with(' ')) {
      ++at;
    } else if (wide != kWideBlanks.end()) {
      at += wide->size();
    } else {
      return at;
    }
  }
}

/// Length of a colour sequence written by report::views::paint at the beginning of a text: ESC [ digits and ; m.
std::size_t colour_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) {
    return 0;
  }
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string screen_line(std::string_view line, bool colour) {
  std::string out;
  while (!line.empty()) {
    const std::size_t escape = colour ? line.find('\x1b') : std::string_view::npos;
    out += core::printable(line.substr(0, escape));
    line.remove_prefix(std::min(escape, line.size()));
    const std::size_t length = colour_length(line);
    out += length == 0 ? core::printable(line.substr(0, 1)) : std::string(line.substr(0, length));
    line.remove_prefix(std::min(std::max<std::size_t>(1, length), line.size()));
  }
  if (const std::size_t start = leading_blanks(out); std::string_view(out).substr(start).starts_with("::")) {
    out.replace(start, 1, "\\x3a");
  }
  // Azure Pipelines (##vso[, ##[) and TeamCity (##teamcity[) look for their commands anywhere in a line.
  return replaced(std::move(out), "##", "#\\x23");
}

}  // namespace

std::string screen_text(std::string_view text, bool colour) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    out += screen_line(text.substr(0, end), colour);
    if (end == std::string_view::npos) {
      break;
    }
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

std::string stdout_text(std::string json) {
  return replaced(std::move(json), "##", "#\\u0023");
}

std::string stdout_json(const nlohmann::json& value, int indent) {
  return stdout_text(value.dump(indent, ' ', true, nlohmann::json::error_handler_t::replace)) + "\n";
}

}  // namespace numcheck::app
