// Reductions over the threads of a warp or block, in an order fixed by the number of threads alone.
#pragma once

#include <cuda_runtime_api.h>

namespace numcheck::kernels::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kWholeWarp = 0xffffffffu;
inline constexpr int kReduceScratch = 32;  ///< elements of shared memory that a block reduction needs: one per warp

__device__ __forceinline__ float shuffle_xor(float value, int lanes) {
  return __shfl_xor_sync(kWholeWarp, value, lanes);
}
__device__ __forceinline__ float2 shuffle_xor(float2 value, int lanes) {
  return make_float2(shuffle_xor(value.x, lanes), shuffle_xor(value.y, lanes));
}

struct Add {
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
  __device__ __forceinline__ float2 operator()(float2 a, float2 b) const { return make_float2(a.x + b.x, a.y + b.y); }
};

/// The larger one; a NaN is dropped if the other is a number.
struct Larger {
  __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// All 32 lanes take part and all get the result, with the same bits: `combine` must be commutative. With fewer lanes
/// (a power of two), each group of that many adjacent lanes reduces on its own.
template <class T, class Combine>
__device__ __forceinline__ T warp_reduce(T value, Combine combine, int lanes = kWarp) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    value = combine(value, shuffle_xor(value, distance));
  }
  return value;
}

/// All threads of the block take part and all get the result, with the same bits. blockDim.x is a multiple of 32, and
/// the block is one-dimensional. `scratch`: kReduceScratch elements of shared memory, free again on return. Absent
/// warps count as `identity`.
template <class T, class Combine>
__device__ __forceinline__ T block_reduce(T value, Combine combine, T identity, T* scratch) {
  value = warp_reduce(value, combine);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  if (warps == 1) {
    return value;
  }
  if (lane == 0) {
    scratch[threadIdx.x / kWarp] = value;
  }
  __syncthreads();
  value = warp_reduce(lane < warps ? scratch[lane] : identity, combine);
  __syncthreads();
  return value;
}

/// Reductions over a block in a loop, with one synchronisation each: the two halves of the scratch alternate, so that
/// neither is overwritten before every thread has read it. All threads of the block take part.
template <class T>
class BlockSums {
 public:
  __device__ __forceinline__ explicit BlockSums(T (*scratch)[kReduceScratch]) : scratch_(scratch) {}

  __device__ __forceinline__ T operator()(T value) {
    value = warp_reduce(value, Add{});
    const int warps = static_cast<int>(blockDim.x) / kWarp;
    if (warps == 1) {
      return value;
    }
    T* const half = scratch_[turn_];
    turn_ ^= 1;
    if (threadIdx.x % kWarp == 0) {
      half[threadIdx.x / kWarp] = value;
    }
    __syncthreads();
    T total = half[0];
    for (int warp = 1; warp < warps; ++warp) {
      total = Add{}(total, half[warp]);
    }
    return total;
  }

 private:
  T (*scratch_)[kReduceScratch];
  int turn_ = 0;
};

__device__ __forceinline__ float warp_sum(float value) {
  return warp_reduce(value, Add{});
}
__device__ __forceinline__ float warp_max(float value) {
  return warp_reduce(value, Larger{});
}
__device__ __forceinline__ float block_sum(float value, float* scratch) {
  return block_reduce(value, Add{}, 0.0f, scratch);
}
__device__ __forceinline__ float block_max(float value, float* scratch) {
  return block_reduce(value, Larger{}, -INFINITY, scratch);
}

}  // namespace numcheck::kernels::cuda
