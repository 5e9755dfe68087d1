#include "plan/source.hpp"

#include <algorithm>

namespace numcheck::plan {
namespace {

// A line longer than this is cut to a window around the column.
constexpr std::size_t kMaxLine = 100;
constexpr std::size_t kBefore = 40;
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

/// As written, except that tabs take one column.
std::string one_column_tabs(std::string_view line) {
  std::string text(line);
  std::ranges::replace(text, '\t', ' ');
  return text;
}

bool is_continuation(char c) noexcept {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

/// Number of bytes at `offset` that count as one column: a well-formed sequence, or one stray byte.
std::size_t step(std::string_view text, std::size_t offset) noexcept {
  return std::max<std::size_t>(1, utf8_length(text, offset));
}

std::size_t count_columns(std::string_view text) noexcept {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size(); at += step(text, at)) {
    ++columns;
  }
  return columns;
}

/// Whether a line has more than kMaxLine columns; looks no further than that.
bool is_long(std::string_view line) noexcept {
  std::size_t at = 0;
  for (std::size_t columns = 0; columns < kMaxLine && at < line.size(); ++columns) {
    at += step(line, at);
  }
  return at < line.size();
}

/// Offset `columns` code points before `offset`, but not before `start`.
std::size_t step_back(std::string_view text, std::size_t start, std::size_t offset, std::size_t columns) noexcept {
  for (; columns > 0 && offset > start; --columns) {
    std::size_t back = 1;
    while (back < 4 && offset - back > start && is_continuation(text[offset - back])) {
      ++back;
    }
    offset -= utf8_length(text, offset - back) == back ? back : 1;
  }
  return offset;
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) {
      return at;
    }
    at += length;
  }
  return std::string_view::npos;
}

LineColumn line_column(std::string_view text, std::size_t offset) noexcept {
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const std::size_t newline = before.rfind('\n');
  const std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  const auto lines = static_cast<std::size_t>(std::ranges::count(before, '\n'));
  return {lines + 1, count_columns(before.substr(start)) + 1};
}

void place(Diagnostic& diagnostic, const Sources& sources, const Location& where) {
  if (where.file >= sources.size()) {
    return;
  }
  const std::string_view text = sources[where.file].text;
  const std::size_t offset = std::min(where.begin, text.size());
  const LineColumn position = line_column(text, offset);
  diagnostic.file = sources[where.file].name;
  diagnostic.line = position.line;
  diagnostic.column = position.column;

  const std::size_t newline = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  std::size_t end = std::min(text.find('\n', offset), text.size());
  if (end > start && text[end - 1] == '\r') {
    --end;
  }
  std::string prefix;
  std::string suffix;
  if (is_long(text.substr(start, end - start))) {
    const std::size_t window = step_back(text, start, offset, kBefore);
    prefix = window > start ? kEllipsis : std::string_view();
    start = window;
    std::size_t cut = start;
    for (std::size_t n = 0; n < kMaxLine && cut < end; ++n) {
      cut += step(text, cut);
    }
    suffix = cut < end ? kEllipsis : std::string_view();
    end = std::min(cut, end);
  }
  const std::size_t from = std::clamp(offset, start, end);
  const std::size_t to = std::min(end, from + where.length);
  diagnostic.source_line = prefix + one_column_tabs(text.substr(start, end - start)) + suffix;
  diagnostic.caret_column = count_columns(prefix) + count_columns(text.substr(start, from - start)) + 1;
  diagnostic.caret_length = std::max<std::size_t>(1, count_columns(text.substr(from, to - from)));
}

}  // namespace numcheck::plan
