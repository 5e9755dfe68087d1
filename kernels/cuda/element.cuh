// Elements in device memory: conversion to and from FP32, vectors of them, and the choice of their type at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "kernels/cuda/storage.hpp"
#include "kernels/cuda_support/element.cuh"

namespace numcheck::kernels::cuda {

using cuda_support::from_float;
using cuda_support::rounded_through;
using cuda_support::to_float;

/// Bytes of a thread's widest access.
inline constexpr int kAccessBytes = 16;

/// Bytes that one access moves: at most kAccessBytes.
constexpr std::size_t access_bytes(std::size_t bytes) {
  return bytes < kAccessBytes ? bytes : kAccessBytes;
}

/// N consecutive elements, moved in as few accesses as possible. N * sizeof(T) is a power of two; the address is a
/// multiple of access_bytes(N * sizeof(T)).
template <class T, int N>
struct alignas(access_bytes(sizeof(T) * N)) Vec {
  T at[N];

  __device__ __forceinline__ static Vec load(const T* from) { return *reinterpret_cast<const Vec*>(from); }
  __device__ __forceinline__ void store(T* to) const { *reinterpret_cast<Vec*>(to) = *this; }
};

/// Every element rounded as by from_float. 16-bit formats are converted in pairs, which costs half as much.
template <class T, int N>
__device__ __forceinline__ Vec<T, N> rounded_vec(const float (&values)[N]) {
  Vec<T, N> out;
  if constexpr (N % 2 == 0 && (std::is_same_v<T, __nv_bfloat16> || std::is_same_v<T, __half>)) {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      if constexpr (std::is_same_v<T, __half>) {
        const __half2 pair = __floats2half2_rn(values[i], values[i + 1]);
        out.at[i] = pair.x;
        out.at[i + 1] = pair.y;
      } else {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(values[i], values[i + 1]);
        out.at[i] = pair.x;
        out.at[i + 1] = pair.y;
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      out.at[i] = from_float<T>(values[i]);
    }
  }
  return out;
}

/// True if rows of `cols` elements, `ld` apart, starting at `data`, can be moved as Vec<T, N>.
template <class T, int N>
inline bool can_vectorise(const void* data, std::int64_t cols, std::int64_t ld) {
  return reinterpret_cast<std::uintptr_t>(data) % alignof(Vec<T, N>) == 0 && cols % N == 0 &&
         static_cast<std::size_t>(ld) * sizeof(T) % alignof(Vec<T, N>) == 0;
}

/// Raises *amax, a number >= 0, to |value|; the order of the calls does not matter. NaN does not raise it. Meant for
/// one call per warp or block.
__device__ __forceinline__ void raise_amax(float* amax, float value) {
  // Reading it first avoids most of the atomics: it never falls, so a stale value only costs one more of them. Bit
  // patterns of non-negative floats are ordered like the floats.
  const float magnitude = fabsf(value);
  if (magnitude > __ldcg(amax)) {
    atomicMax(reinterpret_cast<unsigned*>(amax), __float_as_uint(magnitude));
  }
}

/// Stands for a type without holding a value of it.
template <class T>
struct Type {
  using type = T;
};

/// f(Type<T>{}) with the element type of the storage. `f` returns the same type, such as cudaError_t, for every T.
template <class F>
auto visit_storage(Storage storage, F&& f) {
  switch (storage) {
    case Storage::bf16:
      return f(Type<__nv_bfloat16>{});
    case Storage::fp16:
      return f(Type<__half>{});
    case Storage::fp8_e4m3:
      return f(Type<__nv_fp8_e4m3>{});
    case Storage::fp8_e5m2:
      return f(Type<__nv_fp8_e5m2>{});
    case Storage::fp32:
      break;
  }
  return f(Type<float>{});
}

/// The same for tensors that are never FP8. Precondition: !is_fp8(storage).
template <class F>
auto visit_wide_storage(Storage storage, F&& f) {
  switch (storage) {
    case Storage::bf16:
      return f(Type<__nv_bfloat16>{});
    case Storage::fp16:
      return f(Type<__half>{});
    default:
      return f(Type<float>{});
  }
}

}  // namespace numcheck::kernels::cuda
