// The texts of a plan's files, and positions in them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/printable.hpp"
#include "plan/diagnostic.hpp"
#include "plan/node.hpp"

namespace numcheck::plan {

using core::utf8_length;

struct Source {
  std::string name;  ///< as messages show it
  std::string text;
};

/// All files that a plan was read from; Location::file is the index.
using Sources = std::vector<Source>;

/// 1-based line, and column in code points.
struct LineColumn {
  std::size_t line = 0;
  std::size_t column = 0;
};

[[nodiscard]] LineColumn line_column(std::string_view text, std::size_t offset) noexcept;

/// Fills file, line, column, source line and caret of a diagnostic from a location (nothing if it has no file).
void place(Diagnostic& diagnostic, const Sources& sources, const Location& where);

/// Offset of the first byte that is not valid UTF-8, or npos.
[[nodiscard]] std::size_t find_invalid_utf8(std::string_view text) noexcept;

}  // namespace numcheck::plan
