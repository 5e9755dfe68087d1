// Lines of an output of which a number each may be known.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "diagnose/hypothesis.hpp"

namespace numcheck::diagnose {

/// Rows of the output, its columns, or the parts of its rows that heads have.
struct Direction {
  std::string_view what;
  std::size_t lines = 0, length = 0, line_step = 1, element_step = 1;
  std::size_t heads = 1;  ///< lines of a row

  [[nodiscard]] std::size_t at(std::size_t line, std::size_t i) const noexcept {
    return line * line_step + i * element_step;
  }
};

/// Both, and the parts of heads, if they are long enough for a number of each to be known; none of a part of the output.
[[nodiscard]] std::vector<Direction> directions(const Evidence& evidence);

}  // namespace numcheck::diagnose
