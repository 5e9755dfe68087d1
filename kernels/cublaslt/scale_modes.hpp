// How cuBLASLt is told which elements of an FP8 operand share a scale.
#pragma once

#include <cstddef>
#include <string>

#include "kernels/cublas_support/handles.hpp"
#include "op/gemm.hpp"

namespace numcheck::kernels::cublaslt {

/// Why the library, of that version, has no product with these scales, as a sentence; empty if it may have one.
/// Source: cuBLAS manual, cublasLtMatmulMatrixScale_t and the table of types of cublasLtMatmul.
[[nodiscard]] std::string scale_obstacle(const op::GemmParams& params, int sm, std::size_t library_version);

/// Does nothing if each operand has one scale. Precondition: scale_obstacle() is empty.
void set_scale_modes(const op::GemmParams& params, cublas_support::MatmulDesc& desc);

}  // namespace numcheck::kernels::cublaslt
