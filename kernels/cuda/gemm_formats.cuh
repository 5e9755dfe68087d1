// The formats of operands and outputs that our own products have kernels for. Device code.
#pragma once

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/gemm_kernel.hpp"

namespace numcheck::kernels::cuda {

/// An E2M1 number in the low half of a byte.
struct E2m1 {
  unsigned char code;
};

__device__ inline float to_float(E2m1 x) {
  const int exponent = x.code >> 1 & 3;
  const float half = x.code & 1 ? 0.5f : 0.0f;
  const float size = exponent == 0 ? half : (1.0f + half) * static_cast<float>(1 << (exponent - 1));
  return x.code & 8 ? -size : size;
}

/// Codes have FP32, BF16 and FP16 outputs.
template <class A, class B, class Run>
cudaError_t with_code_outputs(Storage out, Run run) {
  switch (out) {
    case Storage::fp32:
      return run(A(), B(), float());
    case Storage::bf16:
      return run(A(), B(), __nv_bfloat16());
    case Storage::fp16:
      return run(A(), B(), __half());
    default:
      return cudaErrorNotSupported;
  }
}

/// Operands of more than a byte have outputs of their own format, and FP32 ones.
template <class In, class Run>
cudaError_t with_outputs(Storage in, Storage out, Run run) {
  if (out == Storage::fp32) {
    return run(In(), In(), float());
  }
  return out == in ? run(In(), In(), In()) : cudaErrorNotSupported;
}

/// Calls run(A(), B(), Out()) for the formats of a product, if there is a kernel for them.
template <class Run>
cudaError_t with_product_formats(const GemmLaunch& p, Run run) {
  const Storage a = p.a.storage, b = p.b.storage, out = p.d.storage;
  if (p.c.data != nullptr && p.c.storage != out) {
    return cudaErrorNotSupported;
  }
  if (a == Storage::fp8_e4m3 && b == Storage::fp8_e5m2) {
    return with_code_outputs<__nv_fp8_e4m3, __nv_fp8_e5m2>(out, run);
  }
  if (a != b) {
    return cudaErrorNotSupported;
  }
  switch (a) {
    case Storage::fp32:
      return with_outputs<float>(a, out, run);
    case Storage::bf16:
      return with_outputs<__nv_bfloat16>(a, out, run);
    case Storage::fp16:
      return with_outputs<__half>(a, out, run);
    case Storage::fp8_e4m3:
      return with_code_outputs<__nv_fp8_e4m3, __nv_fp8_e4m3>(out, run);
    case Storage::fp4_e2m1:
      return with_code_outputs<E2m1, E2m1>(out, run);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace numcheck::kernels::cuda
