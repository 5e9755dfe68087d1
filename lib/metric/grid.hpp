// How an output is cut into tiles: by its shape alone, so that results do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "op/op.hpp"

namespace numcheck::metric {

/// Part of one matrix of the output.
struct Tile {
  std::int64_t batch = 0;
  std::int64_t row_block = 0, column_block = 0;
  std::int64_t row_begin = 0, row_end = 0;
  std::int64_t column_begin = 0, column_end = 0;
};

/// Tiles of at most 1024 columns (so that their column sums stay in the L1 cache) and a multiple of 64 rows (so that each
/// has whole tiles of the groups), at most 64 row blocks per matrix (so that their column sums stay small compared with the output). Small tiles share a task.
class Grid {
 public:
  explicit Grid(const op::Port& port);

  [[nodiscard]] std::size_t tasks() const noexcept { return tasks_; }
  [[nodiscard]] std::int64_t first_tile(std::size_t task) const noexcept;
  [[nodiscard]] std::int64_t last_tile(std::size_t task) const noexcept;  ///< one past
  [[nodiscard]] Tile tile(std::int64_t index) const noexcept;
  [[nodiscard]] std::int64_t row_blocks() const noexcept { return row_blocks_; }
  [[nodiscard]] std::int64_t column_blocks() const noexcept { return column_blocks_; }

  static constexpr std::int64_t kTileColumns = 1024;

 private:
  std::int64_t rows_, cols_, batch_;
  std::int64_t rows_per_block_ = 1, row_blocks_ = 0, column_blocks_ = 0;
  std::int64_t tiles_ = 0, tiles_per_task_ = 1;
  std::size_t tasks_ = 0;
};

}  // namespace numcheck::metric
