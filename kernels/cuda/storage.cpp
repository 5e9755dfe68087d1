#include "kernels/cuda/storage.hpp"

#include <fmt/format.h>

#include "core/dtype.hpp"
#include "core/error.hpp"

namespace numcheck::kernels::cuda {

Storage storage_of(core::Dtype dtype) {
  switch (dtype) {
    case core::Dtype::fp32:
    case core::Dtype::tf32:
      return Storage::fp32;
    case core::Dtype::bf16:
      return Storage::bf16;
    case core::Dtype::fp16:
      return Storage::fp16;
    case core::Dtype::fp8_e4m3:
      return Storage::fp8_e4m3;
    case core::Dtype::fp8_e5m2:
      return Storage::fp8_e5m2;
    case core::Dtype::fp4_e2m1:
      return Storage::fp4_e2m1;
    default:
      throw core::InternalError(fmt::format("CUDA kernels: no storage for {}", core::dtype_info(dtype).name));
  }
}

}  // namespace numcheck::kernels::cuda
