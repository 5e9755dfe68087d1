#include "kernels/cuda/gemm_tile.cuh"
#include "kernels/cuda/grouped_gemm_kernel.hpp"

namespace numcheck::kernels::cuda {
namespace {

__host__ __device__ std::int64_t tiles_of_group(const GroupLaunch& group) {
  return (static_cast<std::int64_t>(group.m) + kTile - 1) / kTile *
         ((static_cast<std::int64_t>(group.n) + kTile - 1) / kTile);
}

/// A group as a product of its own.
__device__ GemmLaunch product_of(const GroupedGemmLaunch& all, const GroupLaunch& group) {
  GemmLaunch p;
  p.m = group.m;
  p.n = group.n;
  p.k = group.k;
  p.trans_a = all.trans_a;
  p.trans_b = all.trans_b;
  p.alpha = all.alpha;
  p.beta = all.beta;
  p.a = {group.a, all.input, all.trans_a ? p.m : p.k, 0};
  p.b = {group.b, all.input, all.trans_b ? p.k : p.n, 0};
  p.c = {group.c, all.output, p.n, 0};
  p.d = {group.d, all.output, p.n, 0};
  return p;
}

/// Blocks number the tiles of all groups, one group after another.
template <class In, class Out>
__global__ void grouped_gemm_kernel(const __grid_constant__ GroupedGemmLaunch all) {
  std::int64_t tile = blockIdx.x;
  for (int i = 0; i < all.groups; ++i) {
    const GroupLaunch& group = all.group[i];
    const std::int64_t tiles = tiles_of_group(group);
    if (tile < tiles) {
      compute_tile<In, In, Out>(product_of(all, group), tile, 0);
      return;
    }
    tile -= tiles;
  }
}

template <class In, class Out>
cudaError_t launch_typed(const GroupedGemmLaunch& launch, cudaStream_t stream) {
  std::int64_t tiles = 0;
  for (int i = 0; i < launch.groups; ++i) {
    tiles += tiles_of_group(launch.group[i]);
  }
  if (tiles == 0) {
    return cudaSuccess;
  }
  if (tiles > 0x7fffffff) {
    return cudaErrorInvalidConfiguration;
  }
  grouped_gemm_kernel<In, Out><<<static_cast<unsigned>(tiles), dim3(kThreads, kThreads), 0, stream>>>(launch);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_grouped_gemm(const GroupedGemmLaunch& launch, cudaStream_t stream) {
  return with_formats(launch.input, launch.output, [&](auto input, auto output) {
    return launch_typed<decltype(input), decltype(output)>(launch, stream);
  });
}

}  // namespace numcheck::kernels::cuda
