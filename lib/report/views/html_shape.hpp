// What the maps of an output look like.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace numcheck::report::views {

/// Patterns that typical faults leave; a row of the key each.
enum class MapShape : unsigned char { none, block, rows, columns, mirrored, stripes_down, woven, noise };

/// The pattern of rectangular maps of equal size, with the letters of picture_members.hpp; `mean` may be empty. `square`:
/// a cell covers as many rows as columns. Only a hint: the shape of a map proves nothing.
[[nodiscard]] MapShape shape_of(const std::vector<std::string>& worst, const std::vector<std::string>& mean,
                                bool square);

/// The pattern as a glyph with its name and what it means, as HTML; empty for none.
[[nodiscard]] std::string shape_glyph(MapShape shape);

}  // namespace numcheck::report::views
