// Our formats and compute types in the terms of cuBLAS.
#pragma once

#include <cublasLt.h>

#include "core/dtype.hpp"
#include "op/mode.hpp"

namespace numcheck::kernels::cublas_support {

/// Storage format in the library's terms; throws InternalError for a format that cuBLASLt does not have.
[[nodiscard]] cudaDataType_t cuda_type(core::Dtype dtype);

/// The mode's compute type. EMULATED_16BFX9 exists since cuBLAS 12.9; throws InternalError in an older build.
[[nodiscard]] cublasComputeType_t compute_type(op::Compute compute);

/// True if this build's header has the mode's compute type.
[[nodiscard]] bool knows_compute(op::Compute compute) noexcept;

}  // namespace numcheck::kernels::cublas_support
