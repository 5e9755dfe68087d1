// Which elements of an output are wrong by themselves, and where they lie: rows, columns, matrices of a batch, tiles.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "metric/compare.hpp"

namespace numcheck::metric {

/// Rows, columns or matrices that have wrong elements.
struct WrongLines {
  std::int64_t touched = 0;  ///< how many of them
  std::int64_t of = 0;       ///< how many there are
  struct Range {
    std::int64_t first = 0, last = 0;
  };
  std::vector<Range> ranges;  ///< the first ones, at most kRangesKept
  std::int64_t range_count = 0;
  std::int64_t step = 0;  ///< if there are at least 3 ranges, all of one length and one distance: that distance; else 0
};
inline constexpr std::size_t kRangesKept = 8;

/// Square tiles, aligned to multiples of their size.
struct WrongTiles {
  std::int64_t size = 0;
  std::int64_t touched = 0, of = 0;
  std::array<std::int64_t, 3> first{};  ///< matrix, row and column where the first one begins
};

struct WrongElements {
  std::uint64_t count = 0;
  std::uint64_t of = 0;  ///< elements that were compared
  WrongLines matrices, rows, columns;
  std::optional<WrongTiles> tiles;  ///< the largest size whose touched tiles, but not all tiles, are nearly all wrong
};

/// Marks with 1 the compared elements that exceed what a single element may: G1's bound, G2's largest spread, G4's limit,
/// NaN or infinity in the wrong place, the plan's allclose and `max_ulp`; for exact models, other bits. 0 otherwise.
[[nodiscard]] std::vector<std::uint8_t> mark_wrong(const CompareInput& input, const std::optional<double>& max_ulp);

/// Where the marked elements lie. `wrong` is parallel to the port's elements, or to the sample.
[[nodiscard]] WrongElements locate(std::span<const std::uint8_t> wrong, const op::Port& port, const op::Sample& sample);

/// Both, given the comparison's statistics, which often say that no single element is wrong.
[[nodiscard]] WrongElements find_wrong(const CompareInput& input, const Statistics& statistics,
                                       const std::optional<double>& max_ulp);

}  // namespace numcheck::metric
