// Tiles of x, each read once by a block of threads.
#include "kernels/cuda/block_quantize_ahead.cuh"
#include "kernels/cuda/block_quantize_kernel.hpp"
#include "kernels/cuda/block_store.cuh"
#include "kernels/cuda/block_tile.cuh"
#include "kernels/cuda/residency.hpp"
#include "kernels/cuda/tile_scales.cuh"

namespace numcheck::kernels::cuda {
namespace {

constexpr int kRowThreads = 256;
constexpr int kRowTile = kRowThreads / kWarp * kRowsOfWarp;
/// Per multiprocessor. More of them have too few registers, and take up to twice as long on an H200.
constexpr int kRowBlocks = 4;

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

/// Four codes of each of a thread's columns, to the layout along columns, transposed.
template <bool kVector>
__device__ __forceinline__ void store_turned(const BlockQuantizeLaunch& p, const TilePlace& at,
                                             const unsigned (&words)[kTileWidth]) {
  __shared__ TurnedTile tile;
  tile.put(at, words);
  __syncthreads();
  tile.write<kVector, kTileThreads>(p, at);
}

/// Codes and scales of a tile along columns, and along rows if they are wanted, too.
template <class In, class Out, Blocks kBlocks, bool kVector>
__device__ __forceinline__ void quantize_tile(const BlockQuantizeLaunch& p, const TilePlace& at,
                                              TilePiece<In> (&x)[kTileRows]) {
  if constexpr (kBlocks == Blocks::square) {
    unsigned words[kTileWidth];
    store_square<Out, kVector>(p, at, x, square_factor<In, Out>(p, at, piece_amax(x)), words);
    if (is_turned(p)) {
      store_turned<kVector>(p, at, words);
    }
  } else {
    __shared__ ColumnScales<kBlocks> scales;
    constexpr bool kColumnsFirst = kBlocks == Blocks::mx;  // others have more threads to wait for
    if (kColumnsFirst && p.along_columns.codes != nullptr) {
      make_column_scales<In, Out>(p, at, x, scales);
      forget_converted(x);
    }
    if (p.along_rows.codes != nullptr) {
      float of_row[kTileRows];
      row_factors<In, Out, kBlocks>(p, at, x, of_row);
      forget_converted(x);
      store_rows<Out, kVector>(p, at, x, of_row);
      forget_converted(x);
    }
    if (p.along_columns.codes != nullptr) {
      if (!kColumnsFirst) {
        make_column_scales<In, Out>(p, at, x, scales);
        forget_converted(x);
      }
      __syncthreads();
      float of_column[kTileWidth];
#pragma unroll
      for (int j = 0; j < kTileWidth; ++j) {
        of_column[j] = scales.factors[at.row / ColumnScales<kBlocks>::kBlockRows][at.col + j];
      }
      if (kBlocks != Blocks::mx && p.along_columns.transposed) {  // MXFP8 codes never are
        unsigned words[kTileWidth];
        column_words<Out>(x, of_column, words);
        store_turned<kVector>(p, at, words);
      } else {
        store_columns<Out, kVector>(p, at, x, of_column);
      }
    }
  }
}

/// Where this thread's elements of a tile are.
template <Blocks kBlocks>
__device__ __forceinline__ TilePlace place_in(const BlockQuantizeLaunch& p, std::int64_t tile) {
  const std::int64_t across = (p.cols + kTileSide - 1) / kTileSide;
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  return {warp * kRowsOfWarp + lane / kTileLanes * kTileRows, lane % kTileLanes * kTileWidth,
          tile / across * Tiling<kBlocks>::height, tile % across * kTileSide};
}

template <class In, class Out, Blocks kBlocks, bool kVector>
__global__ void __launch_bounds__(Tiling<kBlocks>::threads, Tiling<kBlocks>::per_multiprocessor)
    quantize_blocks(const __grid_constant__ BlockQuantizeLaunch p) {
  const TilePlace at = place_in<kBlocks>(p, blockIdx.x);
  TilePiece<In> x[kTileRows];
  load_tile<In, kVector>(p, at, x);
  quantize_tile<In, Out, kBlocks, kVector>(p, at, x);
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

/// Blocks that the device holds at once, of a kernel with more dynamic shared memory than kernels have unasked; 0: it has less.
template <class Kernel>
std::int64_t resident_with(Kernel kernel, int threads, std::size_t shared) {
  const auto* function = reinterpret_cast<const void*>(kernel);
  const auto set =
      cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
  if (set != cudaSuccess) {
    (void)cudaGetLastError();
    return 0;
  }
  return resident_blocks(function, threads, shared);
}

template <class In, class Out, Blocks kBlocks>
cudaError_t launch_as(const BlockQuantizeLaunch& p, cudaStream_t stream) {
  const bool only_rows = kBlocks != Blocks::square && p.along_columns.codes == nullptr;
  const std::int64_t height = only_rows ? kRowTile : Tiling<kBlocks>::height;
  const std::int64_t tiles = ((p.rows + height - 1) / height) * ((p.cols + kTileSide - 1) / kTileSide);
  constexpr std::int64_t kMostTiles = 0x7fffffff;
  if (tiles == 0) {
    return cudaSuccess;
  }
  if (tiles > kMostTiles) {
    return cudaErrorInvalidConfiguration;
  }
  constexpr int kThreads = Tiling<kBlocks>::threads;
  const auto grid = static_cast<unsigned>(tiles);
  const bool whole = has_whole_accesses(p);
  if constexpr (kBlocks != Blocks::square) {
    if (only_rows) {
      whole ? quantize_rows<In, Out, kBlocks, true><<<grid, kRowThreads, 0, stream>>>(p)
            : quantize_rows<In, Out, kBlocks, false><<<grid, kRowThreads, 0, stream>>>(p);
      return cudaGetLastError();
    }
  }
  if constexpr (sizeof(In) == 2 && kBlocks != Blocks::mx) {
    if (whole) {
      const auto kernel = &quantize_blocks_ahead<In, Out, kBlocks>;
      if (const std::int64_t resident = resident_with(kernel, kAheadThreads, kFetchedBytes);
          resident >= kFewestAheadBlocks * multiprocessors()) {
        kernel<<<grid, kAheadThreads, kFetchedBytes, stream>>>(p);
        return cudaGetLastError();
      }
    }
  }
  whole ? quantize_blocks<In, Out, kBlocks, true><<<grid, kThreads, 0, stream>>>(p)
        : quantize_blocks<In, Out, kBlocks, false><<<grid, kThreads, 0, stream>>>(p);
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
