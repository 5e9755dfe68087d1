#include "kernels/cublas_support/types.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace numcheck::kernels::cublas_support {

cudaDataType_t cuda_type(core::Dtype dtype) {
  switch (dtype) {
    case core::Dtype::fp64:
      return CUDA_R_64F;
    case core::Dtype::fp32:
    case core::Dtype::tf32:
      return CUDA_R_32F;
    case core::Dtype::bf16:
      return CUDA_R_16BF;
    case core::Dtype::fp16:
      return CUDA_R_16F;
    case core::Dtype::fp8_e4m3:
      return CUDA_R_8F_E4M3;
    case core::Dtype::fp8_e5m2:
      return CUDA_R_8F_E5M2;
    case core::Dtype::e8m0:
    case core::Dtype::fp4_e2m1:
    case core::Dtype::uint8:
    case core::Dtype::int32:
      break;
  }
  throw core::InternalError(fmt::format("cuBLASLt binding: no matrix type for {}", core::dtype_info(dtype).name));
}

bool knows_compute(op::Compute compute) noexcept {
#if CUBLAS_VERSION >= 120900
  static_cast<void>(compute);
  return true;
#else
  return compute != op::Compute::emulated_bf16x9;
#endif
}

cublasComputeType_t compute_type(op::Compute compute) {
  switch (compute) {
    case op::Compute::fp32:
      return CUBLAS_COMPUTE_32F;
    case op::Compute::fp32_pedantic:
      return CUBLAS_COMPUTE_32F_PEDANTIC;
    case op::Compute::fast_tf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case op::Compute::fast_16f:
      return CUBLAS_COMPUTE_32F_FAST_16F;
    case op::Compute::fast_16bf:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
    case op::Compute::fp16:
      return CUBLAS_COMPUTE_16F;
    case op::Compute::emulated_bf16x9:
#if CUBLAS_VERSION >= 120900
      return CUBLAS_COMPUTE_32F_EMULATED_16BFX9;
#else
      break;
#endif
  }
  throw core::InternalError("cuBLASLt binding: compute type unknown to this build");
}

}  // namespace numcheck::kernels::cublas_support
