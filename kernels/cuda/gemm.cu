#include "kernels/cuda/gemm_formats.cuh"
#include "kernels/cuda/gemm_kernel.hpp"
#include "kernels/cuda/gemm_tile.cuh"

namespace numcheck::kernels::cuda {
namespace {

template <class A, class B, class Out>
__global__ void gemm_kernel(GemmLaunch p) {
  compute_tile<A, B, Out>(p, blockIdx.x, blockIdx.y);
}

template <class A, class B, class Out>
cudaError_t launch_typed(const GemmLaunch& launch, cudaStream_t stream) {
  const std::int64_t tiles = tiles_of(launch.m, launch.n);
  if (tiles == 0 || launch.batch == 0) {
    return cudaSuccess;
  }
  if (tiles > 0x7fffffff || launch.batch > 65535) {
    return cudaErrorInvalidConfiguration;
  }
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(launch.batch));
  gemm_kernel<A, B, Out><<<grid, dim3(kThreads, kThreads), 0, stream>>>(launch);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_gemm(const GemmLaunch& launch, cudaStream_t stream) {
  return with_product_formats(launch, [&](auto a, auto b, auto out) {
    return launch_typed<decltype(a), decltype(b), decltype(out)>(launch, stream);
  });
}

}  // namespace numcheck::kernels::cuda
