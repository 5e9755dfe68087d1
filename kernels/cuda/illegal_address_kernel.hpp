// Launcher of a kernel that faults. Plain C++17: included by nvcc.
#pragma once

#include <cuda_runtime_api.h>

namespace numcheck::kernels::cuda {

/// Writes to an unmapped address. The fault is asynchronous and destroys the process's device context.
cudaError_t launch_illegal_write(cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
