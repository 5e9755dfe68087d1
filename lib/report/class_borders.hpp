// Searches for the condition on a table's columns that tells one set of its rows from the others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace numcheck::report {

/// A column: one property of every row's shape.
struct Fact {
  /// Extents may be divisible and have ranges; so may other integers, which may also be zero. All that matters of a real
  /// number is whether it is zero. A choice equals one of its labels.
  enum class Kind { extent, integer, real, choice };
  std::string name;
  Kind kind = Kind::extent;
  std::vector<std::int64_t> values;  ///< one per row; of a real number: 0 or 1; of a choice: the position of its label
  std::vector<std::string> labels;   ///< of a choice: "false", "true"
};

/// A condition that holds for exactly the rows that it was searched for.
struct Border {
  std::string condition;  ///< "k % 4 != 0", "m <= 8 and n % 8 = 0"
  /// Other conditions that would do, if `condition` has only one term: the first one of each fact and form.
  std::vector<std::string> also;
};

/// The first condition, in this order, that holds for the rows in `inside` and for no other rows:
///
///   1. one term: divisibility by 2, 4, 8 and 16, extent by extent; then ranges of extents; then all other facts
///   2. two terms joined by "and"
///   3. the negation of what 1 and 2 find for the other rows: one term, or two joined by "or"
///
/// Ranges end at values of rows in `inside`, so they do not say where between two shapes the border is. Facts that are
/// the same in all rows are left out. Nothing if no such condition exists, or if either set is empty.
[[nodiscard]] std::optional<Border> find_border(std::span<const Fact> facts, const std::vector<bool>& inside);

}  // namespace numcheck::report
