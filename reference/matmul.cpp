#include "reference/matmul.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include "core/buffer.hpp"
#include "core/parallel.hpp"
#include "reference/product.hpp"

namespace numcheck::reference {
namespace {

using Index = std::int64_t;

// At least this many pieces of work keep 16 threads evenly busy; fewer and larger tiles are a little faster each.
constexpr Index kTargetTiles = 32;
// Wide tiles suit OpenBLAS, whose columns are our rows. Measured on two Zen 4 cores with k = 4096, against 107 GFLOP/s
// for one multi-threaded call: 512 x 2048 104, 1024 x 1024 101, 256 x 1024 97, 512 x 512 94.
constexpr Index kLargestRows = 512;
constexpr Index kLargestCols = 2048;
constexpr Index kSmallestRows = 128;
constexpr Index kSmallestCols = 256;
constexpr Index kAspect = 4;
// A reduction is cut only where there are too few tiles, and never below this length.
constexpr Index kSmallestPart = 4096;
// Columns of a tile are a multiple of this, so that two threads do not write to one cache line.
constexpr Index kColumnUnit = 16;

Index ceil_div(Index a, Index b) {
  return (a + b - 1) / b;
}

/// The grid of one shape: tiles of nearly equal size, and parts of the reduction.
struct Grid {
  Index row_tiles = 0;
  Index col_tiles = 0;
  Index tile_rows = 0;
  Index tile_cols = 0;
  Index parts = 1;
  Index part_length = 0;

  explicit Grid(const ProductShape& shape) {
    Index rows = kLargestRows;
    Index cols = kLargestCols;
    while ((rows > kSmallestRows || cols > kSmallestCols) &&
           shape.batch * ceil_div(shape.m, rows) * ceil_div(shape.n, cols) < kTargetTiles) {
      const bool flat = cols > kAspect * rows || rows == kSmallestRows;
      (flat ? cols : rows) /= 2;
    }
    tile_rows = ceil_div(shape.m, ceil_div(shape.m, rows));
    tile_cols = ceil_div(ceil_div(shape.n, ceil_div(shape.n, cols)), kColumnUnit) * kColumnUnit;
    row_tiles = ceil_div(shape.m, tile_rows);
    col_tiles = ceil_div(shape.n, tile_cols);
    const Index tiles = shape.batch * row_tiles * col_tiles;
    parts = std::clamp<Index>(std::min(kTargetTiles / tiles, shape.k / kSmallestPart), 1, kTargetTiles);
    part_length = ceil_div(shape.k, parts);
  }

  [[nodiscard]] Tile tile(Index number, const ProductShape& shape) const {
    const Index col = number % col_tiles * tile_cols;
    const Index row = number / col_tiles % row_tiles * tile_rows;
    return {.batch = number / col_tiles / row_tiles,
            .row = row,
            .rows = std::min(tile_rows, shape.m - row),
            .col = col,
            .cols = std::min(tile_cols, shape.n - col)};
  }
};

/// target (tile.rows x tile.cols inside rows of `stride` elements) = product over k in [begin, end).
template <class T>
void multiply_tile(const ProductShape& shape, Factor<T> first, Factor<T> second, const Tile& tile, Index begin,
                   Index end, T* target, Index stride) {
  const T* a = first.data + tile.batch * shape.m * shape.k;
  const T* b = second.data + tile.batch * shape.k * shape.n;
  TileProduct<T> product{.rows = tile.rows, .cols = tile.cols, .depth = std::max<Index>(0, end - begin)};
  product.left = first.transposed ? TileFactor<T>{a + begin * shape.m + tile.row, shape.m, true}
                                  : TileFactor<T>{a + tile.row * shape.k + begin, shape.k, false};
  product.right = second.transposed ? TileFactor<T>{b + tile.col * shape.k + begin, shape.k, true}
                                    : TileFactor<T>{b + begin * shape.n + tile.col, shape.n, false};
  product.out = target;
  product.out_stride = stride;
  reference::multiply(product);
}

/// Few tiles and a long reduction: every part has its own output, and these are added in the order of the parts.
template <class T>
void multiply_in_parts(const ProductShape& shape, const Grid& grid, Index tiles, Factor<T> first, Factor<T> second,
                       T* out, const TileFunction& finish) {
  const Index tile_elements = grid.tile_rows * grid.tile_cols;
  core::Buffer<T> partial(static_cast<std::size_t>(tiles * grid.parts * tile_elements));
  core::parallel_for(static_cast<std::size_t>(tiles * grid.parts), [&](std::size_t item) {
    const auto i = static_cast<Index>(item);
    const Index begin = i % grid.parts * grid.part_length;
    const Index end = std::min(shape.k, begin + grid.part_length);
    const Tile tile = grid.tile(i / grid.parts, shape);
    multiply_tile(shape, first, second, tile, begin, end, partial.data() + i * tile_elements, tile.cols);
  });
  core::parallel_for(static_cast<std::size_t>(tiles), [&](std::size_t item) {
    const auto number = static_cast<Index>(item);
    const Tile tile = grid.tile(number, shape);
    for (Index r = 0; r < tile.rows; ++r) {
      T* row = out + (tile.batch * shape.m + tile.row + r) * shape.n + tile.col;
      for (Index part = 0; part < grid.parts; ++part) {
        const T* add = partial.data() + (number * grid.parts + part) * tile_elements + r * tile.cols;
        for (Index c = 0; c < tile.cols; ++c) {
          row[c] = part == 0 ? add[c] : row[c] + add[c];
        }
      }
    }
    finish(tile);
  });
}

template <class T>
void multiply_all(const ProductShape& shape, Factor<T> first, Factor<T> second, T* out, const TileFunction& finish) {
  if (shape.batch == 0 || shape.m == 0 || shape.n == 0) {
    return;
  }
  const Grid grid(shape);
  const Index tiles = shape.batch * grid.row_tiles * grid.col_tiles;
  if (grid.parts > 1) {
    multiply_in_parts(shape, grid, tiles, first, second, out, finish);
    return;
  }
  core::parallel_for(static_cast<std::size_t>(tiles), [&](std::size_t number) {
    const Tile tile = grid.tile(static_cast<Index>(number), shape);
    T* target = out + (tile.batch * shape.m + tile.row) * shape.n + tile.col;
    multiply_tile(shape, first, second, tile, Index{0}, shape.k, target, shape.n);
    finish(tile);
  });
}

}  // namespace

void multiply(const ProductShape& shape, Factor<double> first, Factor<double> second, double* out,
              const TileFunction& finish) {
  multiply_all(shape, first, second, out, finish);
}

void multiply(const ProductShape& shape, Factor<float> first, Factor<float> second, float* out,
              const TileFunction& finish) {
  multiply_all(shape, first, second, out, finish);
}

std::string_view matmul_implementation() {
  static const std::string text = blas_is_usable() ? describe_blas() : describe_eigen();
  return text;
}

}  // namespace numcheck::reference
