#include "report/views/text_table.hpp"

#include <algorithm>

#include "core/printable.hpp"

namespace numcheck::report::views {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kMinCutWidth = 12;

/// Bytes of the first `count` code points.
std::size_t prefix_bytes(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  while (at < text.size() && count > 0) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0u) == 0x80u) {
      ++at;
    }
    --count;
  }
  return at;
}

std::vector<std::size_t> column_widths(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                                       std::size_t width) {
  std::vector<std::size_t> widths;
  std::size_t total = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t widest = display_width(columns[i].title);
    for (const std::vector<Cell>& row : rows) {
      widest = std::max(widest, display_width(row[i].text));
    }
    widths.push_back(widest);
    total += widest + (i == 0 ? 0 : kGap);
  }
  while (width != 0 && total > width) {
    std::size_t widest = columns.size();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].can_shorten && widths[i] > kMinCutWidth &&
          (widest == columns.size() || widths[i] > widths[widest])) {
        widest = i;
      }
    }
    if (widest == columns.size()) {
      break;
    }
    const std::size_t excess = std::min(total - width, widths[widest] - kMinCutWidth);
    widths[widest] -= excess;
    total -= excess;
  }
  return widths;
}

std::string line_of(const std::vector<Column>& columns, const std::vector<std::size_t>& widths,
                    const std::vector<Cell>& cells, bool colour) {
  std::string line;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string text = columns[i].can_shorten ? cut_middle(cells[i].text, widths[i]) : cells[i].text;
    const std::string fill(widths[i] - std::min(widths[i], display_width(text)), ' ');
    const std::string painted = paint(text, cells[i].colour, colour);
    line += std::string(i == 0 ? 0 : kGap, ' ') + (columns[i].right ? fill + painted : painted + fill);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string paint(std::string_view text, Colour colour, bool enabled) {
  const auto code = [colour]() -> std::string_view {
    switch (colour) {
      case Colour::none:
        return "";
      case Colour::red:
        return "31";
      case Colour::green:
        return "32";
      case Colour::yellow:
        return "33";
      case Colour::cyan:
        return "36";
      case Colour::bold:
        return "1";
      case Colour::dim:
        return "2";
      case Colour::alarm:
        return "1;37;41";
    }
    return "";
  }();
  if (!enabled || code.empty() || text.empty()) {
    return std::string(text);
  }
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

std::size_t display_width(std::string_view text) noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
}

std::string cut_middle(std::string_view text, std::size_t width) {
  const std::size_t size = display_width(text);
  if (size <= width || width == 0) {
    return std::string(text);
  }
  const std::size_t left = (width - 1) / 2;
  const std::size_t right = width - 1 - left;
  return std::string(text.substr(0, prefix_bytes(text, left))) + "…" +
         std::string(text.substr(prefix_bytes(text, size - right)));
}

std::string render_table(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                         std::size_t width, bool colour) {
  std::vector<std::vector<Cell>> shown = rows;
  for (std::vector<Cell>& row : shown) {
    for (Cell& cell : row) {
      cell.text = core::printable(cell.text);
    }
  }
  const std::vector<std::size_t> widths = column_widths(columns, shown, width);
  std::vector<Cell> titles;
  for (const Column& column : columns) {
    titles.push_back({column.title, Colour::bold});
  }
  std::string text = line_of(columns, widths, titles, colour);
  for (const std::vector<Cell>& row : shown) {
    text += line_of(columns, widths, row, colour);
  }
  return text;
}

}  // namespace numcheck::report::views
