// Scales that blocks of a port's elements share (op::Port::scaled_by).
#pragma once

#include <cstddef>
#include <span>

#include "op/op.hpp"

namespace numcheck::data {

/// The scale of an element, by its flat index: `scales` holds those of every block, row by row and matrix by matrix.
[[nodiscard]] inline double block_scale(const op::Port& port, std::span<const double> scales, std::size_t flat) {
  const auto divide_up = [](std::int64_t value, std::int64_t by) {
    return static_cast<std::size_t>((value + by - 1) / by);
  };
  const auto cols = static_cast<std::size_t>(port.cols), rows = static_cast<std::size_t>(port.rows);
  const std::size_t row = flat / cols;
  const std::size_t down = divide_up(port.rows, port.block_rows), across = divide_up(port.cols, port.block_cols);
  const std::size_t line = row / rows * down + row % rows / static_cast<std::size_t>(port.block_rows);
  return scales[line * across + flat % cols / static_cast<std::size_t>(port.block_cols)];
}

}  // namespace numcheck::data
