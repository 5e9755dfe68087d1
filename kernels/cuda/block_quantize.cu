// One tile per block of threads, which reads x once. Amaxes of rows and columns meet in shuffles and, across warps, in
// shared memory, through which transposed codes go as bytes.
#include "kernels/cuda/block_quantize_kernel.hpp"
#include "kernels/cuda/block_scale.cuh"
#include "kernels/cuda/block_tile.cuh"
#include "kernels/cuda/reduce.cuh"

namespace numcheck::kernels::cuda {
namespace {

constexpr int kRowThreads = 256;
constexpr int kRowsOfWarp = kWarp / kTileLanes * kTileRows;
constexpr int kRowTile = kRowThreads / kWarp * kRowsOfWarp;
/// Per multiprocessor. More of them have too few registers, and take up to twice as long on an H200.
constexpr int kRowBlocks = 4;

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

/// Codes of every row, with one factor for each of them, to the layout along rows.
template <class Out, bool kVector, class In>
__device__ __forceinline__ void store_rows(const BlockQuantizeLaunch& p, const TilePlace& at,
                                           const TilePiece<In> (&x)[kTileRows], const float (&factor)[kTileRows]) {
  const std::int64_t col = at.first_col + at.col;
#pragma unroll
  for (int i = 0; i < kTileRows; ++i) {
    const std::int64_t row = at.first_row + at.row + i;
    Vec<unsigned, kTileWidth / 4> words;
#pragma unroll
    for (int w = 0; w < kTileWidth / 4; ++w) {
      words.at[w] = code_word<Out>(x[i][4 * w] * factor[i], x[i][4 * w + 1] * factor[i], x[i][4 * w + 2] * factor[i],
                                   x[i][4 * w + 3] * factor[i]);
    }
    if (row < p.rows) {
      store_codes<kVector>(p.along_rows.codes, row * p.cols + col, words, p.cols - col);
    }
  }
}

/// The same with a factor for each column, to the layout along columns, as x lies.
template <class Out, bool kVector, class In>
__device__ __forceinline__ void store_columns(const BlockQuantizeLaunch& p, const TilePlace& at,
                                              const TilePiece<In> (&x)[kTileRows], const float (&factor)[kTileWidth]) {
  const std::int64_t col = at.first_col + at.col;
#pragma unroll
  for (int i = 0; i < kTileRows; ++i) {
    const std::int64_t row = at.first_row + at.row + i;
    Vec<unsigned, kTileWidth / 4> words;
#pragma unroll
    for (int w = 0; w < kTileWidth / 4; ++w) {
      words.at[w] = code_word<Out>(x[i][4 * w] * factor[4 * w], x[i][4 * w + 1] * factor[4 * w + 1],
                                   x[i][4 * w + 2] * factor[4 * w + 2], x[i][4 * w + 3] * factor[4 * w + 3]);
    }
    if (row < p.rows) {
      store_codes<kVector>(p.along_columns.codes, row * p.cols + col, words, p.cols - col);
    }
  }
}

/// The same, transposed. A word holds four codes of a column. Groups of four words are exchanged depending on the column, so that
/// the lanes of a warp write to 16 banks instead of two, and reading them as 16 bytes has no conflicts.
template <class Out, bool kVector, class In>
__device__ __forceinline__ void store_transposed(const BlockQuantizeLaunch& p, const TilePlace& at,
                                                 const TilePiece<In> (&x)[kTileRows],
                                                 const float (&factor)[kTileWidth]) {
  __shared__ alignas(16) unsigned tile[kTileSide * kTileWords];
  const auto swap_of = [](int col) { return col / kTileWidth % (kTileWords / 4) * 4; };
#pragma unroll
  for (int j = 0; j < kTileWidth; ++j) {
    const int col = at.col + j;
    tile[col * kTileWords + (at.row / kTileRows ^ swap_of(col))] =
        code_word<Out>(x[0][j] * factor[j], x[1][j] * factor[j], x[2][j] * factor[j], x[3][j] * factor[j]);
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kTileSide * kTileSide / kTurnedWidth / kTileThreads; ++k) {
    const int index = k * kTileThreads + static_cast<int>(threadIdx.x);
    const int col = index / (kTileSide / kTurnedWidth), group = index % (kTileSide / kTurnedWidth);
    const std::int64_t row = at.first_row + group * kTurnedWidth, line = at.first_col + col;
    if (line < p.cols) {
      const auto words = Vec<unsigned, 4>::load(tile + col * kTileWords + (group * 4 ^ swap_of(col)));
      store_codes<kVector>(p.along_columns.codes, line * p.rows + row, words, p.rows - row);
    }
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

/// The scales of the columns' blocks, each made once; a thread gets the factors of its columns.
template <class In, class Out, Blocks kBlocks>
__device__ __forceinline__ void column_factors(const BlockQuantizeLaunch& p, const TilePlace& at,
                                               const TilePiece<In> (&x)[kTileRows], float (&factor)[kTileWidth]) {
  constexpr int kBlockRows = kBlocks == Blocks::mx ? kMxBlock : kTileSide;
  constexpr int kGroups = kTileSide / kBlockRows;
  constexpr int kWarpsOfGroup = kTileWarps / kGroups;
  __shared__ alignas(16) float partial[kTileWarps][kTileSide];
  __shared__ alignas(16) float factors[kGroups][kTileSide];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  float amax[kTileWidth];
  column_amaxes(x, amax);
  if (lane < kTileLanes) {
#pragma unroll
    for (int j = 0; j < kTileWidth; ++j) {
      partial[warp][at.col + j] = amax[j];
    }
  }
  __syncthreads();
  for (int index = static_cast<int>(threadIdx.x); index < kGroups * kTileSide; index += kTileThreads) {
    const int group = index / kTileSide, col = index % kTileSide;
    float most = 0.0f;
#pragma unroll
    for (int w = 0; w < kWarpsOfGroup; ++w) {
      most = fmaxf(most, partial[group * kWarpsOfGroup + w][col]);
    }
    const std::int64_t row = at.first_row + group * kBlockRows, column = at.first_col + col;
    factors[group][col] = make_scale<In, Out, kBlocks>(p, p.along_columns, most, row / kBlockRows, column,
                                                       row < p.rows && column < p.cols);
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kTileWidth; ++j) {
    factor[j] = factors[at.row / kBlockRows][at.col + j];
  }
}

/// The scale of a square block, stored for both layouts.
template <class In, class Out>
__device__ __forceinline__ float square_factor(const BlockQuantizeLaunch& p, const TilePlace& at,
                                               const TilePiece<In> (&x)[kTileRows]) {
  __shared__ float scratch[kReduceScratch];
  float amax = 0.0f;
#pragma unroll
  for (int i = 0; i < kTileRows; ++i) {
    amax = fmaxf(amax, row_amax(x[i]));
  }
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

/// Only the layout along rows: tiles are as high as a block of threads is, and nothing goes through shared memory.
template <class In, class Out, Blocks kBlocks, bool kVector>
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    quantize_rows(const __grid_constant__ BlockQuantizeLaunch p) {
  const std::int64_t across = (p.cols + kTileSide - 1) / kTileSide;
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const TilePlace at{warp * kRowsOfWarp + lane / kTileLanes * kTileRows, lane % kTileLanes * kTileWidth,
                     blockIdx.x / across * kRowTile, blockIdx.x % across * kTileSide};
  TilePiece<In> x[kTileRows];
  load_tile<In, kVector>(p, at, x);
  float of_row[kTileRows];
  row_factors<In, Out, kBlocks>(p, at, x, of_row);
  forget_converted(x);
  store_rows<Out, kVector>(p, at, x, of_row);
}

template <class In, class Out, Blocks kBlocks, bool kVector>
__global__ void __launch_bounds__(kTileThreads, 2) quantize_blocks(const __grid_constant__ BlockQuantizeLaunch p) {
  const std::int64_t across = (p.cols + kTileSide - 1) / kTileSide;
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const TilePlace at{warp * (kTileSide / kTileWarps) + lane / kTileLanes * kTileRows, lane % kTileLanes * kTileWidth,
                     blockIdx.x / across * kTileSide, blockIdx.x % across * kTileSide};
  TilePiece<In> x[kTileRows];
  load_tile<In, kVector>(p, at, x);
  float of_row[kTileRows], of_column[kTileWidth];
  if constexpr (kBlocks == Blocks::square) {
    const float factor = square_factor<In, Out>(p, at, x);
#pragma unroll
    for (int i = 0; i < kTileRows; ++i) {
      of_row[i] = factor;
    }
#pragma unroll
    for (int j = 0; j < kTileWidth; ++j) {
      of_column[j] = factor;
    }
  }
  if (p.along_rows.codes != nullptr) {
    if constexpr (kBlocks != Blocks::square) {
      row_factors<In, Out, kBlocks>(p, at, x, of_row);
    }
    forget_converted(x);
    store_rows<Out, kVector>(p, at, x, of_row);
    forget_converted(x);
  }
  if (p.along_columns.codes != nullptr) {
    if constexpr (kBlocks != Blocks::square) {
      column_factors<In, Out, kBlocks>(p, at, x, of_column);
      forget_converted(x);
    }
    const bool turned = kBlocks != Blocks::mx && p.along_columns.transposed;  // MXFP8 codes never are
    if (turned) {
      store_transposed<Out, kVector>(p, at, x, of_column);
    } else {
      store_columns<Out, kVector>(p, at, x, of_column);
    }
  }
}

bool is_aligned(const void* data, int bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(bytes) == 0;
}

/// Whether all that a thread reads or writes at once is whole accesses.
bool has_whole_accesses(const BlockQuantizeLaunch& p) {
  const bool turned = p.along_columns.transposed && p.along_columns.codes != nullptr;
  return p.cols % kTileWidth == 0 && (!turned || p.rows % kTurnedWidth == 0) && is_aligned(p.x.data, kAccessBytes) &&
         is_aligned(p.along_rows.codes, kTileWidth) &&
         is_aligned(p.along_columns.codes, turned ? kTurnedWidth : kTileWidth);
}

template <class In, class Out, Blocks kBlocks>
cudaError_t launch_as(const BlockQuantizeLaunch& p, cudaStream_t stream) {
  const bool only_rows = kBlocks != Blocks::square && p.along_columns.codes == nullptr;
  const std::int64_t height = only_rows ? kRowTile : kTileSide;
  const std::int64_t tiles = ((p.rows + height - 1) / height) * ((p.cols + kTileSide - 1) / kTileSide);
  constexpr std::int64_t kMostTiles = 0x7fffffff;
  if (tiles == 0) {
    return cudaSuccess;
  }
  if (tiles > kMostTiles) {
    return cudaErrorInvalidConfiguration;
  }
  const auto grid = static_cast<unsigned>(tiles);
  const bool whole = has_whole_accesses(p);
  if constexpr (kBlocks != Blocks::square) {
    if (only_rows) {
      whole ? quantize_rows<In, Out, kBlocks, true><<<grid, kRowThreads, 0, stream>>>(p)
            : quantize_rows<In, Out, kBlocks, false><<<grid, kRowThreads, 0, stream>>>(p);
      return cudaGetLastError();
    }
  }
  whole ? quantize_blocks<In, Out, kBlocks, true><<<grid, kTileThreads, 0, stream>>>(p)
        : quantize_blocks<In, Out, kBlocks, false><<<grid, kTileThreads, 0, stream>>>(p);
  return cudaGetLastError();
}

template <class In, class Out>
cudaError_t launch_formats(const BlockQuantizeLaunch& p, cudaStream_t stream) {
  switch (p.blocks) {
    case Blocks::square:
      return launch_as<In, Out, Blocks::square>(p, stream);
    case Blocks::mx:
      return launch_as<In, Out, Blocks::mx>(p, stream);
    default:
      return launch_as<In, Out, Blocks::line>(p, stream);
  }
}

}  // namespace

cudaError_t launch_block_quantize(const BlockQuantizeLaunch& launch, cudaStream_t stream) {
  if (is_fp8(launch.x.storage) || !is_fp8(launch.format)) {
    return cudaErrorNotSupported;
  }
  return visit_wide_storage(launch.x.storage, [&](auto type) {
    using In = typename decltype(type)::type;
    return launch.format == Storage::fp8_e5m2 ? launch_formats<In, __nv_fp8_e5m2>(launch, stream)
                                              : launch_formats<In, __nv_fp8_e4m3>(launch, stream);
  });
}

}  // namespace numcheck::kernels::cuda
