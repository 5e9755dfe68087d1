// Outputs that an op defines bit for bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "core/parallel.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

[[nodiscard]] inline op::OutputValues exact_output(std::string_view port, core::Buffer<double> values) {
  op::OutputValues out;
  out.port = port;
  out.value = std::move(values);
  out.bit_exact = true;
  return out;
}

[[nodiscard]] inline op::OutputValues exact_output(std::string_view port, std::size_t elements) {
  return exact_output(port, core::Buffer<double>(elements));
}

/// out[c][r] = in[r][c], by tiles that stay in the first-level cache.
[[nodiscard]] inline op::OutputValues transposed(std::string_view port, const double* in, std::size_t rows,
                                                 std::size_t cols) {
  constexpr std::size_t kTile = 32;
  op::OutputValues out = exact_output(port, rows * cols);
  core::parallel_chunks(cols, kTile, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t first = 0; first < rows; first += kTile) {
      const std::size_t last = std::min(rows, first + kTile);
      for (std::size_t c = begin; c < end; ++c) {
        for (std::size_t r = first; r < last; ++r) {
          out.value[c * rows + r] = in[r * cols + c];
        }
      }
    }
  });
  return out;
}

}  // namespace numcheck::reference
