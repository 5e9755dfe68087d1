// Small copies and fills, gathered so that many of them are one kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda_support/copy_kernel.hpp"

namespace numcheck::kernels::cuda_support {

/// Copies on a stream, in the order of the calls. Copy engines take turns of their own on a GPU that several processes
/// share: with eight processes on an H200, a launch between small copies takes 280 us of the GPU, and 150 us if kernels
/// copy. Where this build has no kernel for the device, the copies are the runtime's.
class CopyBatch {
 public:
  /// Precondition: the stream's device is current.
  explicit CopyBatch(cudaStream_t stream);

  /// Host memory must be pinned; its contents are read, or written, by the time the stream has finished.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);
  void fill(std::byte* to, std::uint8_t pattern, std::size_t bytes);
  /// Puts on the stream what has been gathered, and forgets it. Precondition: the device is current. Throws CudaError.
  void flush();

 private:
  void add(const CopyPiece& piece);

  cudaStream_t stream_;
  bool has_kernel_;
  CopyPieces pieces_;
};

}  // namespace numcheck::kernels::cuda_support
