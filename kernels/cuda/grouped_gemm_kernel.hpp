// Launcher of our own FP32 FMA product of several groups. Plain C++17: included by nvcc.
#pragma once

#include <vector>

#include <cuda_runtime_api.h>

#include "kernels/cuda/gemm_kernel.hpp"

namespace numcheck::kernels::cuda {

/// Every group as launch_gemm() computes it, bit for bit, all in one launch; a group without products gets f(beta C + bias).
/// Formats are those of the first group in all of them, and there is one matrix in each. `on_device` is a copy of the groups in
/// device memory.
cudaError_t launch_grouped_gemm(const std::vector<GemmLaunch>& groups, const GemmLaunch* on_device,
                                cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
