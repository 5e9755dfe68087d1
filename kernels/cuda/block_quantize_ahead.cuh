// Tiles of 16-bit elements, each fetched to shared memory past the registers: a thread has eight rows of eight columns under way at
// once, and few enough registers that four blocks of threads are on a multiprocessor. A tile takes half as many threads as one that
// is loaded to registers: fewer of them wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_pipeline_primitives.h>

#include "kernels/cuda/block_store.cuh"
#include "kernels/cuda/block_tile.cuh"
#include "kernels/cuda/tile_scales.cuh"

namespace numcheck::kernels::cuda {

inline constexpr int kAheadThreads = 256;
/// Per multiprocessor. In BF16 (32768 x 2048, both ways) an H200 takes 75 us with scales of lines and 73 with those of square blocks;
/// with three 76 and 73, with two 84 and 73, with five, which lack registers, 92 and 75.
inline constexpr int kAheadBlocks = 4;
/// On devices with less shared memory. With one, nothing would be fetched while codes are stored.
inline constexpr int kFewestAheadBlocks = 2;
inline constexpr int kAheadWarps = kAheadThreads / kWarp;
inline constexpr int kAheadRows = kTileSide * kTileLanes / kAheadThreads;  // of a thread
inline constexpr int kParts = kAheadRows / kTileRows;                      // of four rows each
inline constexpr std::size_t kFetchedBytes = std::size_t{kAheadRows} * kAheadThreads * kAccessBytes;

template <class In>
using TileParts = TilePiece<In>[kParts][kTileRows];

/// Where one of a thread's parts is, from where its first one is.
__device__ __forceinline__ TilePlace part_of(TilePlace at, int part) {
  at.row += part * kTileRows;
  return at;
}

/// What the threads of a tile tell each other.
template <class In>
struct AheadShared {
  alignas(16) In partial[kAheadWarps][kTileSide];  ///< amaxes of columns in the rows of a warp; only of lines
  alignas(16) float factors[kTileSide];            ///< of columns; only of lines
};

/// The largest magnitudes of the columns in the rows of each warp. Complete after the next barrier.
template <class In>
__device__ __forceinline__ void share_column_amaxes(const TilePlace& at, const TileParts<In>& x,
                                                    AheadShared<In>& shared) {
  using P = typename Pair<In>::type;
  static_assert(2 * kTileLanes == kWarp && kTileRows == 4 && kParts == 2);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  Vec<In, kTileWidth> most;
#pragma unroll
  for (int k = 0; k < kTileWidth / 2; ++k) {
    const auto of_part = [k](const TilePiece<In>(&part)[kTileRows]) {
      const auto pair = [k, &part](int i) { return reinterpret_cast<const P*>(part[i].chunk)[k]; };
      return larger_magnitude(larger_magnitude(pair(0), pair(1)), larger_magnitude(pair(2), pair(3)));
    };
    const P own = larger_magnitude(of_part(x[0]), of_part(x[1]));
    reinterpret_cast<P*>(most.at)[k] = larger_magnitude(own, __shfl_xor_sync(kWholeWarp, own, kTileLanes));
  }
  if (lane < kTileLanes) {
    most.store(&shared.partial[warp][at.col]);
  }
}

/// The scales of the columns' blocks, each made once, from shared amaxes. The factors are there after the next barrier.
template <class In, class Out>
__device__ __forceinline__ void share_column_factors(const BlockQuantizeLaunch& p, const TilePlace& at,
                                                     AheadShared<In>& shared) {
  const int col = static_cast<int>(threadIdx.x);
  if (col < kTileSide) {
    float amax = 0.0f;
#pragma unroll
    for (int w = 0; w < kAheadWarps; ++w) {
      amax = fmaxf(amax, to_float(shared.partial[w][col]));  // drops NaN
    }
    const std::int64_t column = at.first_col + col;
    shared.factors[col] =
        make_scale<In, Out, Blocks::line>(p, p.along_columns, amax, at.first_row / kTileSide, column, column < p.cols);
  }
}

/// Codes and scales of a tile's rows.
template <class In, class Out>
__device__ __forceinline__ void quantize_part_rows(const BlockQuantizeLaunch& p, const TilePlace& at,
                                                   TilePiece<In> (&x)[kTileRows]) {
  float of_row[kTileRows];
  row_factors<In, Out, Blocks::line>(p, at, x, of_row);
  forget_converted(x);
  store_rows<Out, true>(p, at, x, of_row);
  forget_converted(x);
}

/// A tile with a scale per 128 of a column, and of a row if they are wanted, too.
template <class In, class Out>
__device__ __forceinline__ void quantize_lines(const BlockQuantizeLaunch& p, const TilePlace& at, TileParts<In>& x,
                                               AheadShared<In>& shared, TurnedTile& turned) {
  share_column_amaxes(at, x, shared);
  __syncthreads();
  share_column_factors<In, Out>(p, at, shared);
#pragma unroll
  for (int part = 0; part < kParts && p.along_rows.codes != nullptr; ++part) {
    forget_converted(x[part]);
    quantize_part_rows<In, Out>(p, part_of(at, part), x[part]);  // while the others make the factors
  }
  __syncthreads();
  float of_column[kTileWidth];
#pragma unroll
  for (int j = 0; j < kTileWidth; ++j) {
    of_column[j] = shared.factors[at.col + j];
  }
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    if (is_turned(p)) {
      unsigned words[kTileWidth];
      column_words<Out>(x[part], of_column, words);
      turned.put(part_of(at, part), words);
    } else {
      store_columns<Out, true>(p, part_of(at, part), x[part], of_column);
    }
  }
}

/// A tile with one scale.
template <class In, class Out>
__device__ __forceinline__ void quantize_square(const BlockQuantizeLaunch& p, const TilePlace& at, TileParts<In>& x,
                                                TurnedTile& turned) {
  const float factor = square_factor<In, Out>(p, at, fmaxf(piece_amax(x[0]), piece_amax(x[1])));
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    forget_converted(x[part]);
    unsigned words[kTileWidth];
    store_square<Out, true>(p, part_of(at, part), x[part], factor, words);
    if (is_turned(p)) {
      turned.put(part_of(at, part), words);
    }
  }
}

/// Codes along columns are wanted, or tiles have one scale; whole accesses. The tile's own memory holds its codes on their way to the
/// layout along columns: every thread has its elements in registers when the first barrier is passed.
template <class In, class Out, Blocks kBlocks>
__global__ void __launch_bounds__(kAheadThreads, kAheadBlocks)
    quantize_blocks_ahead(const __grid_constant__ BlockQuantizeLaunch p) {
  extern __shared__ __align__(16) unsigned char fetched[];
  __shared__ AheadShared<In> shared;
  static_assert(sizeof(TurnedTile) <= kFetchedBytes);
  auto& turned = *reinterpret_cast<TurnedTile*>(fetched);
  const std::int64_t across = (p.cols + kTileSide - 1) / kTileSide;
  const int line = static_cast<int>(threadIdx.x) / kTileLanes, lane = static_cast<int>(threadIdx.x) % kTileLanes;
  const TilePlace at{line * kAheadRows, lane * kTileWidth, blockIdx.x / across * kTileSide,
                     blockIdx.x % across * kTileSide};
  const auto place_of = [&](int row) {
    return fetched + (row * kAheadThreads + static_cast<int>(threadIdx.x)) * kAccessBytes;
  };
  const std::int64_t col = at.first_col + at.col;
#pragma unroll
  for (int i = 0; i < kAheadRows; ++i) {
    const std::int64_t row = at.first_row + at.row + i;
    const bool inside = row < p.rows && col < p.cols;
    const In* from = static_cast<const In*>(p.x.data) + (inside ? row * p.cols + col : 0);
    __pipeline_memcpy_async(place_of(i), from, kAccessBytes, inside ? 0 : kAccessBytes);
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  TileParts<In> x;
#pragma unroll
  for (int i = 0; i < kAheadRows; ++i) {
    x[i / kTileRows][i % kTileRows].chunk[0] = Vec<In, kTileWidth>::load(reinterpret_cast<const In*>(place_of(i)));
  }
  if constexpr (kBlocks == Blocks::square) {
    quantize_square<In, Out>(p, at, x, turned);
  } else {
    quantize_lines<In, Out>(p, at, x, shared, turned);
  }
  if (is_turned(p)) {
    __syncthreads();
    turned.template write<true, kAheadThreads>(p, at);
  }
}

}  // namespace numcheck::kernels::cuda
