#include "kernels/cuda/attention_dropout_kernel.hpp"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/philox.cuh"

namespace numcheck::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWords = 4;  // random words of a block
constexpr std::int64_t kMaxBlocks = 1 << 16;

/// A thread per block of random words.
template <class T>
__global__ void __launch_bounds__(kThreads) draw_mask(DropoutMaskLaunch p, unsigned threshold) {
  T* mask = static_cast<T*>(p.mask.data);
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t group = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; group * kWords < p.elements;
       group += step) {
    const uint4 block = philox(static_cast<std::uint64_t>(group), p.seed);
    const unsigned words[kWords] = {block.x, block.y, block.z, block.w};
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const std::int64_t at = group * kWords + i;
      if (at < p.elements) {
        mask[at] = from_float<T>(words[i] < threshold ? 0.0f : 1.0f);
      }
    }
  }
}

}  // namespace

cudaError_t launch_dropout_mask(const DropoutMaskLaunch& launch, cudaStream_t stream) {
  const std::int64_t groups = (launch.elements + kWords - 1) / kWords;
  const std::int64_t wanted = (groups + kThreads - 1) / kThreads;
  const auto blocks = static_cast<unsigned>(wanted < kMaxBlocks ? wanted : kMaxBlocks);
  const auto threshold = static_cast<unsigned>(launch.dropout * 0x1p32);
  return visit_wide_storage(launch.mask.storage, [&](auto type) {
    draw_mask<typename decltype(type)::type><<<blocks, kThreads, 0, stream>>>(launch, threshold);
    return cudaGetLastError();
  });
}

}  // namespace numcheck::kernels::cuda
