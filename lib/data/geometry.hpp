// How the elements of a tensor lie, for the distributions to which it matters.
#pragma once

#include <cstdint>

namespace numcheck::data {

/// Columns of a tensor that consists of a single row.
inline constexpr std::uint64_t kOneRow = std::uint64_t{1} << 58;

struct Geometry {
  std::uint64_t cols = kOneRow;     ///< at least 1
  std::uint64_t rows = 1;           ///< of one matrix of the batch; at least 1
  bool reduced_along_rows = false;  ///< the op sums over the row index instead of the column index
};

}  // namespace numcheck::data
