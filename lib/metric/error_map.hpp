// Where an output is wrong: its errors over the bound in a few cells, small enough to be kept in a report and drawn.
#pragma once

#include <cstdint>
#include <vector>

#include "metric/compare.hpp"

namespace numcheck::metric {

/// Part of an output.
struct MapCell {
  std::uint64_t compared = 0;  ///< elements; 0: none of the cell's is in the sample
  double over_bound = 0;       ///< largest |e| / B of the elements finite on both sides
  double mean_error = 0;       ///< mean of e over them
  bool unwritten = false;      ///< holds an element with the poison pattern where a number was expected
  bool mismatch = false;       ///< holds an element whose NaN or infinity is wrong
};

/// An output as a matrix whose rows are those of all matrices of the batch, in at most 32 x 32 cells. A cell covers
/// cell_rows x cell_cols elements, both powers of two, so that tiles of a kernel do not straddle cells; the last cells of
/// a row and of a column may cover fewer.
struct ErrorMap {
  static constexpr std::int64_t kMaxCells = 32;  ///< along each side

  std::int64_t rows = 0, cols = 0;
  std::int64_t cell_rows = 1, cell_cols = 1;
  std::int64_t down = 0, across = 0;  ///< cells
  std::vector<MapCell> cells;         ///< row by row
};

/// Parallel; does not depend on the number of threads. Costs more per element than compare(): for outputs that are worth
/// looking at.
[[nodiscard]] ErrorMap error_map(const CompareInput& input);

}  // namespace numcheck::metric
