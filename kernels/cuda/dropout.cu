#include "kernels/cuda/dropout_kernel.hpp"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/philox.cuh"

namespace numcheck::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kGroup = 16;  // elements per random block
constexpr std::int64_t kMaxBlocks = 1 << 16;

template <class T>
__global__ void drop_elements(DropoutLaunch p) {
  const T* x = static_cast<const T*>(p.x.data);
  T* y = static_cast<T*>(p.y.data);
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t group = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; group < p.elements / kGroup;
       group += step) {
    const uint4 block = philox(static_cast<std::uint64_t>(group), p.seed);
    const unsigned words[4] = {block.x, block.y, block.z, block.w};
    unsigned bits = 0;
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const bool kept = (words[i / 4] >> (8 * (i % 4)) & 0xFFu) >= p.threshold;
      const std::int64_t at = group * kGroup + i;
      y[at] = from_float<T>(kept ? to_float(x[at]) * p.scale : 0.0f);
      bits |= (kept ? 1u : 0u) << i;
    }
    p.mask[2 * group] = static_cast<std::uint8_t>(bits);
    p.mask[2 * group + 1] = static_cast<std::uint8_t>(bits >> 8);
  }
}

template <class T>
__global__ void apply_mask(DropoutLaunch p) {
  const T* x = static_cast<const T*>(p.x.data);
  T* y = static_cast<T*>(p.y.data);
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < p.elements; i += step) {
    const bool kept = (p.mask[i / 8] >> (i % 8) & 1u) != 0;
    y[i] = from_float<T>(kept ? to_float(x[i]) * p.scale : 0.0f);
  }
}

unsigned blocks_for(std::int64_t work) {
  const std::int64_t blocks = (work + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks);
}

}  // namespace

cudaError_t launch_dropout_fwd(const DropoutLaunch& launch, cudaStream_t stream) {
  if (launch.elements == 0) {
    return cudaSuccess;
  }
  return visit_wide_storage(launch.x.storage, [&](auto type) {
    drop_elements<typename decltype(type)::type><<<blocks_for(launch.elements / kGroup), kThreads, 0, stream>>>(launch);
    return cudaGetLastError();
  });
}

cudaError_t launch_dropout_bwd(const DropoutLaunch& launch, cudaStream_t stream) {
  if (launch.elements == 0) {
    return cudaSuccess;
  }
  return visit_wide_storage(launch.x.storage, [&](auto type) {
    apply_mask<typename decltype(type)::type><<<blocks_for(launch.elements), kThreads, 0, stream>>>(launch);
    return cudaGetLastError();
  });
}

}  // namespace numcheck::kernels::cuda
