#include "metric/grid.hpp"

#include <algorithm>

#include "metric/accumulators.hpp"

namespace numcheck::metric {
namespace {

constexpr std::int64_t kMinRows = kTileSide;
constexpr std::int64_t kMaxRowBlocks = 64;
constexpr std::int64_t kTaskElements = 1 << 15;

std::int64_t divide_up(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

}  // namespace

Grid::Grid(const op::Port& port) : rows_(port.rows), cols_(port.cols), batch_(port.batch) {
  if (port.elements() == 0) {
    return;
  }
  rows_per_block_ = kMinRows * std::max<std::int64_t>(1, divide_up(rows_, kMaxRowBlocks * kMinRows));
  row_blocks_ = divide_up(rows_, rows_per_block_);
  column_blocks_ = divide_up(cols_, kTileColumns);
  tiles_ = batch_ * row_blocks_ * column_blocks_;
  const std::int64_t tile_elements = std::min(rows_, rows_per_block_) * std::min(cols_, kTileColumns);
  tiles_per_task_ = std::max<std::int64_t>(1, kTaskElements / tile_elements);
  tasks_ = static_cast<std::size_t>(divide_up(tiles_, tiles_per_task_));
}

std::int64_t Grid::first_tile(std::size_t task) const noexcept {
  return static_cast<std::int64_t>(task) * tiles_per_task_;
}

std::int64_t Grid::last_tile(std::size_t task) const noexcept {
  return std::min(tiles_, first_tile(task) + tiles_per_task_);
}

Tile Grid::tile(std::int64_t index) const noexcept {
  Tile tile;
  tile.column_block = index % column_blocks_;
  tile.row_block = index / column_blocks_ % row_blocks_;
  tile.batch = index / column_blocks_ / row_blocks_;
  tile.row_begin = tile.row_block * rows_per_block_;
  tile.row_end = std::min(rows_, tile.row_begin + rows_per_block_);
  tile.column_begin = tile.column_block * kTileColumns;
  tile.column_end = std::min(cols_, tile.column_begin + kTileColumns);
  return tile;
}

}  // namespace numcheck::metric
