// Groups of consecutive elements that one thread moves: 16 bytes of input at once where the addresses allow it, element
// by element elsewhere, with the same arithmetic either way.
#pragma once

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/tensor.hpp"

namespace numcheck::kernels::cuda {

/// Elements of In in a group.
template <class In>
inline constexpr int kGroup = kAccessBytes / static_cast<int>(sizeof(In));

/// Up to N elements as FP32.
template <int N>
struct Group {
  float at[N];
};

/// The elements of a whole group as FP32.
template <int N, class T>
__device__ __forceinline__ Group<N> widened(const Vec<T, N>& vector) {
  Group<N> group;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    group.at[i] = to_float(vector.at[i]);
  }
  return group;
}

/// `whole`: all N elements exist and the address is aligned for a Vec<T, N>; otherwise `count` elements are read and
/// the others are zero.
template <int N, class T>
__device__ __forceinline__ Group<N> load_group(const T* from, int count, bool whole) {
  if (whole) {
    return widened<N>(Vec<T, N>::load(from));
  }
  Group<N> group;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    group.at[i] = i < count ? to_float(from[i]) : 0.0f;
  }
  return group;
}

template <class T, int N>
__device__ __forceinline__ void store_as(T* to, const Group<N>& group, int count, bool whole) {
  if (whole) {
    rounded_vec<T>(group.at).store(to);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (i < count) {
        to[i] = from_float<T>(group.at[i]);
      }
    }
  }
}

/// An output tensor that may be quantised: code = sat(RN(RN32(value * scale))), amax = max |value|.
class GroupStore {
 public:
  __device__ __forceinline__ GroupStore(const Tensor& tensor, const float* scale)
      : tensor_(tensor), scale_(scale == nullptr ? 1.0f : *scale), quantises_(scale != nullptr) {}

  template <int N>
  __device__ __forceinline__ void operator()(std::int64_t index, Group<N> group, int count, bool whole) {
    if (quantises_) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        amax_ = i < count ? fmaxf(amax_, fabsf(group.at[i])) : amax_;
        group.at[i] = group.at[i] * scale_;
      }
    }
    // The same branch for every thread: cheaper than a kernel for each format.
    switch (tensor_.storage) {
      case Storage::fp32:
        return store_as(static_cast<float*>(tensor_.data) + index, group, count, whole);
      case Storage::bf16:
        return store_as(static_cast<__nv_bfloat16*>(tensor_.data) + index, group, count, whole);
      case Storage::fp16:
        return store_as(static_cast<__half*>(tensor_.data) + index, group, count, whole);
      case Storage::fp8_e4m3:
        return store_as(static_cast<__nv_fp8_e4m3*>(tensor_.data) + index, group, count, whole);
      case Storage::fp8_e5m2:
        return store_as(static_cast<__nv_fp8_e5m2*>(tensor_.data) + index, group, count, whole);
    }
  }

  /// Raises *amax to the largest |value| that this block stored. All threads of the block take part.
  __device__ __forceinline__ void raise(float* amax) const {
    __shared__ float scratch[kReduceScratch];
    if (quantises_ && amax != nullptr) {
      const float largest = block_max(amax_, scratch);
      if (threadIdx.x == 0) {
        raise_amax(amax, largest);
      }
    }
  }

 private:
  Tensor tensor_;
  float scale_;
  bool quantises_;
  float amax_ = 0.0f;
};

/// True if groups of N elements of the tensor, starting at multiples of N, can be moved as Vec<T, N> for the T that it
/// stores.
inline bool groups_aligned(const Tensor& tensor, int elements) {
  const std::size_t bytes =
      static_cast<std::size_t>(elements) * static_cast<std::size_t>(storage_bytes(tensor.storage));
  return reinterpret_cast<std::uintptr_t>(tensor.data) % access_bytes(bytes) == 0;
}

}  // namespace numcheck::kernels::cuda
