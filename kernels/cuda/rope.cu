#include "kernels/cuda/element.cuh"
#include "kernels/cuda/rope_kernel.hpp"

namespace numcheck::kernels::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kMaxBlocks = 1 << 20;

/// One block per token, in a grid-stride loop; a thread reuses a channel's angle for all heads of the token.
template <class T>
__global__ void rotate_heads(RopeLaunch p) {
  const T* x = static_cast<const T*>(p.x.data);
  T* y = static_cast<T*>(p.y.data);
  const int half = p.rotated / 2;
  for (std::int64_t token = blockIdx.x; token < p.seq * p.batch; token += gridDim.x) {
    const std::int64_t sequence = p.batch_first ? token / p.seq : token % p.batch;
    const std::int64_t position = p.batch_first ? token % p.seq : token / p.batch;
    const std::int64_t row = position + (p.starts == nullptr ? 0 : p.starts[sequence]);
    const float* angles = p.freqs + row * p.rotated;
    for (int i = static_cast<int>(threadIdx.x); i < p.dim; i += kThreads) {
      const bool rotates = i < p.rotated;
      const bool first = p.interleaved ? i % 2 == 0 : i < half;
      const int other = !rotates ? i : p.interleaved ? i ^ 1 : first ? i + half : i - half;
      const float cosine = rotates ? cosf(angles[i]) : 1.0f;
      const float sine = rotates ? sinf(angles[p.backward ? other : i]) : 0.0f;
      const bool minus = first != p.backward;
      for (std::int64_t head = 0; head < p.heads; ++head) {
        const std::int64_t at = (token * p.heads + head) * p.dim;
        if (!rotates) {
          y[at + i] = x[at + i];
          continue;
        }
        const float partner = to_float(x[at + other]);
        y[at + i] = from_float<T>(to_float(x[at + i]) * cosine + (minus ? -partner : partner) * sine);
      }
    }
  }
}

}  // namespace

cudaError_t launch_rope(const RopeLaunch& launch, cudaStream_t stream) {
  const std::int64_t tokens = launch.seq * launch.batch;
  if (tokens == 0) {
    return cudaSuccess;
  }
  const int blocks = static_cast<int>(tokens < kMaxBlocks ? tokens : kMaxBlocks);
  return visit_wide_storage(launch.x.storage, [&](auto type) {
    rotate_heads<typename decltype(type)::type><<<blocks, kThreads, 0, stream>>>(launch);
    return cudaGetLastError();
  });
}

}  // namespace numcheck::kernels::cuda
