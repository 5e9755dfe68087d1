// The scales of a tile's blocks, and what its elements are multiplied by. Amaxes of rows and columns meet in shuffles and, across
// warps, in shared memory.
#pragma once

#include "kernels/cuda/block_scale.cuh"
#include "kernels/cuda/block_tile.cuh"
#include "kernels/cuda/reduce.cuh"

namespace numcheck::kernels::cuda {

inline constexpr int kRowsOfWarp = kWarp / kTileLanes * kTileRows;

/// Tiles of which columns are written: as high as the blocks of elements that have a scale, because low blocks of threads wait less
/// for each other.
template <Blocks kBlocks>
struct Tiling {
  static constexpr int warps = kBlocks == Blocks::mx ? kMxBlock / kRowsOfWarp : kTileWarps;
  static constexpr int threads = warps * kWarp;
  static constexpr int height = warps * kRowsOfWarp;
  static constexpr int per_multiprocessor = 1024 / threads;
};

/// The scale of one block: stores it, and gives what its elements are multiplied by.
template <class In, class Out, Blocks kBlocks>
__device__ __forceinline__ float make_scale(const BlockQuantizeLaunch& p, const BlockCodes& layout, float amax,
                                            std::int64_t i, std::int64_t j, bool writes) {
  const std::int64_t at = i * layout.scale_line + j * layout.scale_step;
  if constexpr (kBlocks == Blocks::mx) {
    constexpr unsigned kSum = 254;
    const unsigned e = exponent_scale<Out>(amax, p.round_up);
    if (writes) {
      static_cast<unsigned char*>(layout.scales)[at] = static_cast<unsigned char>(e);
    }
    return power_of(kSum - e);
  } else {
    const NumberScale made = number_scale<In, Out>(amax, p.epsilon, p.power_of_two);
    if (writes) {
      static_cast<float*>(layout.scales)[at] = made.inverse;
    }
    return made.scale;
  }
}

/// Largest magnitudes of a thread's columns over the rows of its warp.
template <class In>
__device__ __forceinline__ void column_amaxes(const TilePiece<In> (&x)[kTileRows], float (&amax)[kTileWidth]) {
  static_assert(2 * kTileLanes == kWarp && kTileRows == 4);
  if constexpr (sizeof(In) == 2) {
    using P = typename Pair<In>::type;
    const auto pair = [&x](int i, int k) { return reinterpret_cast<const P*>(x[i].chunk)[k]; };
#pragma unroll
    for (int k = 0; k < kTileWidth / 2; ++k) {
      P most = larger_magnitude(larger_magnitude(pair(0, k), pair(1, k)), larger_magnitude(pair(2, k), pair(3, k)));
      most = larger_magnitude(most, __shfl_xor_sync(kWholeWarp, most, kTileLanes));
      amax[2 * k] = fmaxf(0.0f, to_float(most.x));  // drops NaN
      amax[2 * k + 1] = fmaxf(0.0f, to_float(most.y));
    }
  } else {
#pragma unroll
    for (int j = 0; j < kTileWidth; ++j) {
      amax[j] = 0.0f;
#pragma unroll
      for (int i = 0; i < kTileRows; ++i) {
        amax[j] = fmaxf(amax[j], fabsf(x[i][j]));
      }
      amax[j] = fmaxf(amax[j], shuffle_xor(amax[j], kTileLanes));
    }
  }
}

/// Scales of columns' blocks on their way from the threads that make them to those that multiply by them.
template <Blocks kBlocks>
struct ColumnScales {
  static constexpr int kBlockRows = kBlocks == Blocks::mx ? kMxBlock : kTileSide;
  static constexpr int kGroups = Tiling<kBlocks>::height / kBlockRows;
  alignas(16) float partial[Tiling<kBlocks>::warps][kTileSide];
  alignas(16) float factors[kGroups][kTileSide];
};

/// The scales of the columns' blocks, each made once. The factors are there after the next barrier.
template <class In, class Out, Blocks kBlocks>
__device__ __forceinline__ void make_column_scales(const BlockQuantizeLaunch& p, const TilePlace& at,
                                                   const TilePiece<In> (&x)[kTileRows], ColumnScales<kBlocks>& shared) {
  using Scales = ColumnScales<kBlocks>;
  constexpr int kWarpsOfGroup = Tiling<kBlocks>::warps / Scales::kGroups;
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  float amax[kTileWidth];
  column_amaxes(x, amax);
  if (lane < kTileLanes) {
#pragma unroll
    for (int j = 0; j < kTileWidth; ++j) {
      shared.partial[warp][at.col + j] = amax[j];
    }
  }
  __syncthreads();
  for (int index = static_cast<int>(threadIdx.x); index < Scales::kGroups * kTileSide;
       index += Tiling<kBlocks>::threads) {
    const int group = index / kTileSide, col = index % kTileSide;
    float most = 0.0f;
#pragma unroll
    for (int w = 0; w < kWarpsOfGroup; ++w) {
      most = fmaxf(most, shared.partial[group * kWarpsOfGroup + w][col]);
    }
    const std::int64_t row = at.first_row + group * Scales::kBlockRows, column = at.first_col + col;
    shared.factors[group][col] = make_scale<In, Out, kBlocks>(p, p.along_columns, most, row / Scales::kBlockRows,
                                                              column, row < p.rows && column < p.cols);
  }
}

/// Largest magnitude of a thread's elements.
template <class In>
__device__ __forceinline__ float piece_amax(const TilePiece<In> (&x)[kTileRows]) {
  float amax = 0.0f;
#pragma unroll
  for (int i = 0; i < kTileRows; ++i) {
    amax = fmaxf(amax, row_amax(x[i]));
  }
  return amax;
}

/// The scale of a square block, from the largest magnitude of each thread's elements; stored for both layouts.
template <class In, class Out>
__device__ __forceinline__ float square_factor(const BlockQuantizeLaunch& p, const TilePlace& at, float amax) {
  __shared__ float scratch[kReduceScratch];
  amax = block_max(amax, scratch);
  const std::int64_t i = at.first_row / kTileSide, j = at.first_col / kTileSide;
  const bool writes = threadIdx.x == 0;
  const float factor =
      make_scale<In, Out, Blocks::square>(p, p.along_rows, amax, i, j, writes && p.along_rows.codes != nullptr);
  if (writes && p.along_columns.codes != nullptr) {
    make_scale<In, Out, Blocks::square>(p, p.along_columns, amax, i, j, true);
  }
  return factor;
}

/// The scales of the rows' blocks. While lanes find the largest magnitude of a block, they share its four rows, so that each makes the
/// scale of one of them.
template <class In, class Out, Blocks kBlocks>
__device__ __forceinline__ void row_factors(const BlockQuantizeLaunch& p, const TilePlace& at,
                                            const TilePiece<In> (&x)[kTileRows], float (&factor)[kTileRows]) {
  constexpr int kBlockCols = kBlocks == Blocks::mx ? kMxBlock : kTileSide;
  constexpr int kLanesOfBlock = kBlockCols / kTileWidth;
  static_assert(kTileRows == 4 && kLanesOfBlock >= kTileRows);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const bool odd = lane % 2 != 0, second = lane / 2 % 2 != 0;
  float amax[kTileRows];
#pragma unroll
  for (int i = 0; i < kTileRows; ++i) {
    amax[i] = row_amax(x[i]);
  }
  const float upper = fmaxf(odd ? amax[2] : amax[0], shuffle_xor(odd ? amax[0] : amax[2], 1));
  const float lower = fmaxf(odd ? amax[3] : amax[1], shuffle_xor(odd ? amax[1] : amax[3], 1));
  float most = fmaxf(second ? lower : upper, shuffle_xor(second ? upper : lower, 2));
#pragma unroll
  for (int distance = kTileRows; distance < kLanesOfBlock; distance *= 2) {
    most = fmaxf(most, shuffle_xor(most, distance));
  }
  const int own = (odd ? 2 : 0) + (second ? 1 : 0);
  const std::int64_t row = at.first_row + at.row + own, col = at.first_col + at.col / kBlockCols * kBlockCols;
  const bool writes = lane % kLanesOfBlock < kTileRows && row < p.rows && col < p.cols;
  const float scale = make_scale<In, Out, kBlocks>(p, p.along_rows, most, row, col / kBlockCols, writes);
#pragma unroll
  for (int i = 0; i < kTileRows; ++i) {
    factor[i] = __shfl_sync(kWholeWarp, scale, lane / kTileRows * kTileRows + i / 2 + i % 2 * 2);
  }
}

}  // namespace numcheck::kernels::cuda
