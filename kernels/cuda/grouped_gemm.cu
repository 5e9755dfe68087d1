#include <cstdint>
#include <vector>

#include "kernels/cuda/gemm_formats.cuh"
#include "kernels/cuda/gemm_tile.cuh"
#include "kernels/cuda/grouped_gemm_kernel.hpp"

namespace numcheck::kernels::cuda {
namespace {

/// Blocks number the tiles of all groups, one group after another.
template <class A, class B, class Out>
__global__ void grouped_gemm_kernel(const GemmLaunch* all, int groups) {
  std::int64_t tile = blockIdx.x;
  for (int i = 0; i < groups; ++i) {
    const std::int64_t tiles = tiles_of(all[i].m, all[i].n);
    if (tile < tiles) {
      compute_tile<A, B, Out>(all[i], tile, 0);
      return;
    }
    tile -= tiles;
  }
}

}  // namespace

cudaError_t launch_grouped_gemm(const std::vector<GemmLaunch>& groups, const GemmLaunch* on_device,
                                cudaStream_t stream) {
  std::int64_t tiles = 0;
  for (const GemmLaunch& group : groups) {
    tiles += tiles_of(group.m, group.n);
  }
  if (tiles == 0) {
    return cudaSuccess;
  }
  if (tiles > 0x7fffffff) {
    return cudaErrorInvalidConfiguration;
  }
  const auto count = static_cast<int>(groups.size());
  return with_product_formats(groups.front(), [&](auto a, auto b, auto out) {
    grouped_gemm_kernel<decltype(a), decltype(b), decltype(out)>
        <<<static_cast<unsigned>(tiles), dim3(kThreads, kThreads), 0, stream>>>(on_device, count);
    return cudaGetLastError();
  });
}

}  // namespace numcheck::kernels::cuda
