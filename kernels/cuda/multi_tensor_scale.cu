#include "kernels/cuda/block_scale.cuh"
#include "kernels/cuda/multi_tensor_scale_kernel.hpp"

namespace numcheck::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kMostBlocks = 1 << 12;

template <class Out>
__global__ void __launch_bounds__(kThreads) scales_from_amaxes(MultiTensorScaleLaunch p) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < p.count; i += step) {
    const float amax = p.amaxes[i];
    const NumberScale made =
        isnan(amax) ? NumberScale{1.0f, 1.0f} : number_scale<float, Out>(amax, p.epsilon, p.power_of_two);
    p.scales[i] = made.scale;
    p.scale_invs[i] = made.inverse;
  }
}

}  // namespace

cudaError_t launch_multi_tensor_scale(const MultiTensorScaleLaunch& p, cudaStream_t stream) {
  const std::int64_t needed = (p.count + kThreads - 1) / kThreads;
  const int blocks = static_cast<int>(needed < kMostBlocks ? needed : kMostBlocks);
  if (blocks > 0 && p.codes == Storage::fp8_e5m2) {
    scales_from_amaxes<__nv_fp8_e5m2><<<blocks, kThreads, 0, stream>>>(p);
  } else if (blocks > 0) {
    scales_from_amaxes<__nv_fp8_e4m3><<<blocks, kThreads, 0, stream>>>(p);
  }
  return cudaGetLastError();
}

}  // namespace numcheck::kernels::cuda
