// Plain text in columns. Colour never carries meaning on its own.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace numcheck::report::views {

enum class Colour { none, red, green, yellow, cyan, bold, dim, alarm };

/// The text wrapped in the colour's escape sequences; unchanged if `enabled` is false.
[[nodiscard]] std::string paint(std::string_view text, Colour colour, bool enabled);

/// Columns that the text takes on a terminal: UTF-8 code points.
[[nodiscard]] std::size_t display_width(std::string_view text) noexcept;

/// At most `width` columns, cut in the middle ("gemm/m=1…/bf16"), because both ends distinguish cases.
[[nodiscard]] std::string cut_middle(std::string_view text, std::size_t width);

struct Cell {
  std::string text;
  Colour colour = Colour::none;
};

struct Column {
  std::string title;
  bool right = false;        ///< numbers
  bool can_shorten = false;  ///< for identifiers; numbers are never shortened
};

/// Header and rows, two spaces between columns. Columns with can_shorten shrink until a line fits `width`, but to no
/// less than 12 characters. A width of 0 means unlimited. Cells are made printable (core::printable).
[[nodiscard]] std::string render_table(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                                       std::size_t width, bool colour);

}  // namespace numcheck::report::views
