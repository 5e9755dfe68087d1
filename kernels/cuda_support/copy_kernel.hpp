// Launcher of the kernel that does many small copies and fills. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace numcheck::kernels::cuda_support {

/// One copy between device memory and pinned host memory, in either direction; a fill if `from` is null.
struct CopyPiece {
  unsigned char* to = nullptr;
  const unsigned char* from = nullptr;
  std::uint32_t bytes = 0;
  unsigned char pattern = 0;
};

inline constexpr int kMaxCopyPieces = 64;

/// Pieces that do not depend on each other; passed by value as the kernel's parameter.
struct CopyPieces {
  CopyPiece piece[kMaxCopyPieces];
  int count = 0;
};

/// cudaSuccess if this build has the kernel for the current device.
cudaError_t find_copy_kernel();

/// Precondition: 0 < count.
cudaError_t launch_copies(const CopyPieces& pieces, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda_support
