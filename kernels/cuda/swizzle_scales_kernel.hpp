// Launcher of the kernel that swizzles scales. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace numcheck::kernels::cuda {

/// See op::SwizzleScalesParams.
struct SwizzleScalesLaunch {
  const std::uint8_t* scales = nullptr;
  std::uint8_t* swizzled = nullptr;
  std::int64_t lines = 0;
  std::int64_t blocks = 0;       ///< of a line
  bool lines_are_inner = false;  ///< neighbours in memory belong to neighbouring lines
};

/// Every byte of every tile is written, padding with 0.
cudaError_t launch_swizzle_scales(const SwizzleScalesLaunch& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
