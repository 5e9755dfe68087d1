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

/// Codes have FP32, BF16 and FP16 outputs.
template <class A, class B>
cudaError_t launch_codes(const GemmLaunch& launch, cudaStream_t stream) {
  switch (launch.d.storage) {
    case Storage::fp32:
      return launch_typed<A, B, float>(launch, stream);
    case Storage::bf16:
      return launch_typed<A, B, __nv_bfloat16>(launch, stream);
    case Storage::fp16:
      return launch_typed<A, B, __half>(launch, stream);
    default:
      return cudaErrorNotSupported;
  }
}

/// An E2M1 number in the low half of a byte.
struct E2m1 {
  unsigned char code;
};

__device__ float to_float(E2m1 x) {
  const int exponent = x.code >> 1 & 3;
  const float half = x.code & 1 ? 0.5f : 0.0f;
  const float size = exponent == 0 ? half : (1.0f + half) * static_cast<float>(1 << (exponent - 1));
  return x.code & 8 ? -size : size;
}

cudaError_t launch_fp8(const GemmLaunch& launch, cudaStream_t stream) {
  if (launch.a.storage != Storage::fp8_e4m3) {
    return cudaErrorNotSupported;
  }
  return launch.b.storage == Storage::fp8_e4m3 ? launch_codes<__nv_fp8_e4m3, __nv_fp8_e4m3>(launch, stream)
                                               : launch_codes<__nv_fp8_e4m3, __nv_fp8_e5m2>(launch, stream);
}

}  // namespace

cudaError_t launch_gemm(const GemmLaunch& launch, cudaStream_t stream) {
  const Storage in = launch.a.storage;
  const Storage out = launch.d.storage;
  if (launch.c.data != nullptr && launch.c.storage != out) {
    return cudaErrorNotSupported;
  }
  if (is_fp8(in) && is_fp8(launch.b.storage)) {
    return launch_fp8(launch, stream);
  }
  if (in != launch.b.storage) {
    return cudaErrorNotSupported;
  }
  if (in == Storage::fp4_e2m1) {
    return launch_codes<E2m1, E2m1>(launch, stream);
  }
  return with_formats(in, out, [&](auto input, auto output) {
    return launch_typed<decltype(input), decltype(input), decltype(output)>(launch, stream);
  });
}

}  // namespace numcheck::kernels::cuda
