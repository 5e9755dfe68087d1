// Products of large matrices, cut into a grid of tiles that depends on the shape alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace numcheck::reference {

/// out[b] (m x n) = first[b] (m x k) * second[b] (k x n) for b in [0, batch), all dense and row-major.
struct ProductShape {
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// A factor as stored: rows x cols for every matrix of the batch, or its transpose if `transposed`.
template <class T>
struct Factor {
  const T* data = nullptr;
  bool transposed = false;
};

/// Part of the output of one matrix of the batch: rows [row, row + rows), columns [col, col + cols).
struct Tile {
  std::int64_t batch = 0;
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int64_t col = 0;
  std::int64_t cols = 0;
};

/// Called once for every tile, on the thread that finished it, while the tile is in its cache.
using TileFunction = std::function<void(const Tile&)>;

/// Computes all of `out` on core::parallel_for, one thread per tile. Bits do not depend on the number of threads.
/// Zero dimensions are allowed; with k = 0 the product is zero. Source of the tile size: measured, see matmul.cpp.
void multiply(const ProductShape& shape, Factor<double> first, Factor<double> second, double* out,
              const TileFunction& finish);
void multiply(const ProductShape& shape, Factor<float> first, Factor<float> second, float* out,
              const TileFunction& finish);

/// What multiplies: "OpenBLAS 0.3.21 SkylakeX", or "Eigen 3.4.0 SSE2" if no BLAS was linked or there is no room for its
/// buffers. Decided at the first call of any function here, for the whole process.
[[nodiscard]] std::string_view matmul_implementation();

}  // namespace numcheck::reference
