// Launcher of the kernel that compares bytes in device memory. Plain C++17: included by nvcc.
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

namespace numcheck::kernels::cuda_support {

/// cudaSuccess if this build has the kernel for the current device.
cudaError_t find_compare_kernel();

/// Sets `*differs` to 1 if the places hold different bytes, and leaves it alone otherwise. `differs` is pinned host memory, to
/// be read when the stream has finished. Precondition: 0 < bytes.
cudaError_t launch_compare(const std::byte* a, const std::byte* b, std::size_t bytes, unsigned* differs,
                           cudaStream_t stream);

}  // namespace numcheck::kernels::cuda_support
