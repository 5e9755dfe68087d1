// Elements of the three formats in device memory, and reductions over a block.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda_support/element.cuh"
#include "kernels/unfused/attention_kernels.hpp"

namespace numcheck::kernels::unfused {

inline constexpr int kWarp = 32;
inline constexpr int kThreads = 128;  // of every block here
inline constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 20;

using cuda_support::from_float;
using cuda_support::rounded_through;
using cuda_support::to_float;

struct Add {
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};

/// The larger one; a NaN is dropped if the other is a number.
struct Larger {
  __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// All kThreads threads of the block take part and all get the result. `scratch` holds one number per warp and is free
/// again on return.
template <class Combine>
__device__ __forceinline__ float block_reduce(float value, Combine combine, float* scratch) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  const int thread = static_cast<int>(threadIdx.x);
  if (thread % kWarp == 0) {
    scratch[thread / kWarp] = value;
  }
  __syncthreads();
  value = scratch[0];
  for (int warp = 1; warp < kThreads / kWarp; ++warp) {
    value = combine(value, scratch[warp]);
  }
  __syncthreads();
  return value;
}

/// Blocks for so many rows or elements; each block takes every gridDim.x-th.
inline unsigned blocks_for(std::int64_t count) {
  return static_cast<unsigned>(count < kMaxBlocks ? count : kMaxBlocks);
}

/// Stands for a type without holding a value of it.
template <class T>
struct Type {
  using type = T;
};

/// f(Type<T>{}) with the element type of the format, then the error of the launch.
template <class F>
cudaError_t launch_for(Format format, F&& f) {
  switch (format) {
    case Format::bf16:
      f(Type<__nv_bfloat16>{});
      break;
    case Format::fp16:
      f(Type<__half>{});
      break;
    case Format::fp32:
      f(Type<float>{});
      break;
  }
  return cudaGetLastError();
}

}  // namespace numcheck::kernels::unfused
