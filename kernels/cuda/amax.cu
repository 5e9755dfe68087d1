#include "kernels/cuda/amax_kernel.hpp"
#include "kernels/cuda/block_scale.cuh"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/reduce.cuh"

namespace numcheck::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kMostBlocks = 1 << 12;

/// N elements per thread and step; the last elements % N one at a time.
template <class In, int N>
__global__ void __launch_bounds__(kThreads)
    raise_to_largest(const In* __restrict__ x, float* amax, std::int64_t elements) {
  __shared__ float scratch[kReduceScratch];
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  float largest = 0;
  for (std::int64_t i = first; i < elements / N; i += step) {
    const auto in = Vec<In, N>::load(x + i * N);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      largest = fmaxf(largest, fabsf(to_float(in.at[k])));
    }
  }
  for (std::int64_t i = elements / N * N + first; i < elements; i += step) {
    largest = fmaxf(largest, fabsf(to_float(x[i])));
  }
  largest = block_max(largest, scratch);
  if (threadIdx.x == 0) {
    raise_amax(amax, largest);
  }
}

/// One thread.
template <class Out>
__global__ void scale_from_amax(const float* __restrict__ amax, float* __restrict__ scale, float epsilon,
                                bool power_of_two) {
  *scale = number_scale<float, Out>(*amax, epsilon, power_of_two).scale;
}

int blocks_for(std::int64_t work) {
  const std::int64_t blocks = (work + kThreads - 1) / kThreads;
  return static_cast<int>(blocks < 1 ? 1 : blocks < kMostBlocks ? blocks : kMostBlocks);
}

template <class In>
void launch_largest(const AmaxLaunch& p, cudaStream_t stream) {
  constexpr int kWidth = kAccessBytes / static_cast<int>(sizeof(In));
  const auto* x = static_cast<const In*>(p.x.data);
  if (can_vectorise<In, kWidth>(x, kWidth, kWidth)) {
    raise_to_largest<In, kWidth><<<blocks_for(p.elements / kWidth), kThreads, 0, stream>>>(x, p.amax, p.elements);
  } else {
    raise_to_largest<In, 1><<<blocks_for(p.elements), kThreads, 0, stream>>>(x, p.amax, p.elements);
  }
}

}  // namespace

cudaError_t launch_amax(const AmaxLaunch& p, cudaStream_t stream) {
  if (const cudaError_t error = cudaMemsetAsync(p.amax, 0, sizeof(float), stream); error != cudaSuccess) {
    return error;
  }
  if (p.elements > 0) {
    visit_wide_storage(p.x.storage, [&](auto in) {
      launch_largest<typename decltype(in)::type>(p, stream);
      return cudaSuccess;
    });
  }
  if (p.scale != nullptr && p.codes == Storage::fp8_e5m2) {
    scale_from_amax<__nv_fp8_e5m2><<<1, 1, 0, stream>>>(p.amax, p.scale, p.epsilon, p.power_of_two);
  } else if (p.scale != nullptr) {
    scale_from_amax<__nv_fp8_e4m3><<<1, 1, 0, stream>>>(p.amax, p.scale, p.epsilon, p.power_of_two);
  }
  return cudaGetLastError();
}

}  // namespace numcheck::kernels::cuda
