// Launchers of the casts that are tested exhaustively. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/tensor.hpp"

namespace numcheck::exhaustive {

/// x[i] = the FP32 number whose bits are first + i.
cudaError_t launch_numbers(float* x, std::uint32_t first, std::int64_t count, cudaStream_t stream);

/// y[i] = x[i], one at a time as kernels store single elements.
cudaError_t launch_cast(const float* x, const kernels::cuda::Tensor& y, std::int64_t count, cudaStream_t stream);

/// The same, eight at a time as kernels store vectors. Precondition: count is a multiple of 8.
cudaError_t launch_vector_cast(const float* x, const kernels::cuda::Tensor& y, std::int64_t count, cudaStream_t stream);

}  // namespace numcheck::exhaustive
