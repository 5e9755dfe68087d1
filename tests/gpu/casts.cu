#include "kernels/cuda/element.cuh"
#include "tests/gpu/casts.hpp"

namespace numcheck::exhaustive {
namespace {

constexpr int kThreads = 256, kVector = 8;

__global__ void number(float* x, std::uint32_t first, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) {
    x[i] = __uint_as_float(first + static_cast<std::uint32_t>(i));
  }
}

template <class T>
__global__ void cast(const float* x, T* y, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) {
    y[i] = kernels::cuda::from_float<T>(x[i]);
  }
}

template <class T>
__global__ void cast_vectors(const float* x, T* y, std::int64_t count) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kVector;
  if (i < count) {
    float values[kVector];
    for (int j = 0; j < kVector; ++j) {
      values[j] = x[i + j];
    }
    kernels::cuda::rounded_vec<T, kVector>(values).store(y + i);
  }
}

unsigned blocks(std::int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

}  // namespace

cudaError_t launch_numbers(float* x, std::uint32_t first, std::int64_t count, cudaStream_t stream) {
  number<<<blocks(count), kThreads, 0, stream>>>(x, first, count);
  return cudaGetLastError();
}

cudaError_t launch_cast(const float* x, const kernels::cuda::Tensor& y, std::int64_t count, cudaStream_t stream) {
  return kernels::cuda::visit_storage(y.storage, [&](auto type) {
    using T = typename decltype(type)::type;
    cast<<<blocks(count), kThreads, 0, stream>>>(x, static_cast<T*>(y.data), count);
    return cudaGetLastError();
  });
}

cudaError_t launch_vector_cast(const float* x, const kernels::cuda::Tensor& y, std::int64_t count,
                               cudaStream_t stream) {
  return kernels::cuda::visit_storage(y.storage, [&](auto type) {
    using T = typename decltype(type)::type;
    cast_vectors<<<blocks(count / kVector), kThreads, 0, stream>>>(x, static_cast<T*>(y.data), count);
    return cudaGetLastError();
  });
}

}  // namespace numcheck::exhaustive
