// Threads that share the rows of a softmax: a warp for short rows, a block for long ones.
#pragma once

#include <cstdint>

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/softmax_kernel.hpp"

namespace numcheck::kernels::cuda {

inline constexpr int kWarpsPerBlock = 4;  // of the kernels in which each row has one warp
inline constexpr int kMaxThreads = 1024;  // of a block
inline constexpr int kMaxWarpColumns =
    512;  // longer rows go to blocks: 16 elements per thread keep all warps in flight
inline constexpr std::int64_t kMaxRows = 0x7fffffff;  // one block each

struct WarpTeam {
  __device__ int index() const { return static_cast<int>(threadIdx.x) % kWarp; }
  __device__ int size() const { return kWarp; }
  __device__ std::int64_t row() const { return std::int64_t{blockIdx.x} * kWarpsPerBlock + threadIdx.x / kWarp; }
  __device__ float sum(float value) const { return warp_sum(value); }
  __device__ float max(float value) const { return warp_max(value); }
};

struct BlockTeam {
  float* scratch;  ///< kReduceScratch elements of shared memory

  __device__ int index() const { return static_cast<int>(threadIdx.x); }
  __device__ int size() const { return static_cast<int>(blockDim.x); }
  __device__ std::int64_t row() const { return blockIdx.x; }
  __device__ float sum(float value) const { return block_sum(value, scratch); }
  __device__ float max(float value) const { return block_max(value, scratch); }
};

/// Elements per 16-byte access.
template <class T>
inline constexpr int kPerAccess = kAccessBytes / static_cast<int>(sizeof(T));

/// Columns of row i of a matrix up to the diagonal.
__device__ __forceinline__ std::int64_t columns_of(const SoftmaxShape& shape, std::int64_t i) {
  if (shape.diagonal == Diagonal::none) {
    return shape.sk;
  }
  const std::int64_t columns = i + 1 + (shape.diagonal == Diagonal::bottom_right ? shape.sk - shape.sq : 0);
  return columns < 0 ? 0 : columns < shape.sk ? columns : shape.sk;
}

/// N elements starting at `from`, of which `count` exist; the others are `missing`. `whole`: all exist and are aligned
/// for a single access.
template <bool whole, class T, int N>
__device__ __forceinline__ Vec<T, N> load_some(const T* from, int count, T missing) {
  if constexpr (whole) {
    return Vec<T, N>::load(from);
  } else {
    Vec<T, N> out;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      out.at[k] = k < count ? from[k] : missing;
    }
    return out;
  }
}

template <bool whole, class T, int N>
__device__ __forceinline__ void store_some(const Vec<T, N>& values, T* to, int count) {
  if constexpr (whole) {
    values.store(to);
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (k < count) {
        to[k] = values.at[k];
      }
    }
  }
}

/// Blocks in which each team has one row: no loop over rows, which would cost registers and hide less latency than
/// blocks that come and go.
inline unsigned blocks_for_rows(std::int64_t rows, int rows_per_block) {
  return static_cast<unsigned>((rows + rows_per_block - 1) / rows_per_block);
}

/// Threads per block, a multiple of the warp size, if each holds `per_thread` of `columns` elements.
inline int threads_for(std::int64_t columns, int per_thread) {
  const std::int64_t threads = (columns + per_thread - 1) / per_thread;
  return static_cast<int>((threads + kWarp - 1) / kWarp * kWarp);
}

}  // namespace numcheck::kernels::cuda
