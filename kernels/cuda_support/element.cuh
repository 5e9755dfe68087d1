// Elements in device memory, to and from FP32.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace numcheck::kernels::cuda_support {

// Exact.
__device__ __forceinline__ float to_float(float value) {
  return value;
}
__device__ __forceinline__ float to_float(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
__device__ __forceinline__ float to_float(__half value) {
  return __half2float(value);
}
__device__ __forceinline__ float to_float(__nv_fp8_e4m3 value) {
  return static_cast<float>(value);
}
__device__ __forceinline__ float to_float(__nv_fp8_e5m2 value) {
  return static_cast<float>(value);
}

/// One rounding to nearest even. BF16 and FP16 overflow to infinity; FP8 saturates to its largest number, infinity
/// included, and keeps NaN.
template <class T>
__device__ __forceinline__ T from_float(float value) = delete;

template <>
__device__ __forceinline__ float from_float<float>(float value) {
  return value;
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ __forceinline__ __half from_float<__half>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ __forceinline__ __nv_fp8_e4m3 from_float<__nv_fp8_e4m3>(float value) {
  __nv_fp8_e4m3 out;
  out.__x = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
  return out;
}
template <>
__device__ __forceinline__ __nv_fp8_e5m2 from_float<__nv_fp8_e5m2>(float value) {
  __nv_fp8_e5m2 out;
  out.__x = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E5M2);
  return out;
}

/// value rounded to T, as FP32.
template <class T>
__device__ __forceinline__ float rounded_through(float value) {
  return to_float(from_float<T>(value));
}

}  // namespace numcheck::kernels::cuda_support
