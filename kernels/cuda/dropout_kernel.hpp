// Launchers of dropout. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/tensor.hpp"

namespace numcheck::kernels::cuda {

struct DropoutLaunch {
  std::int64_t elements = 0;  ///< a multiple of 16
  unsigned threshold = 0;     ///< an element is dropped if its random byte is below
  float scale = 1;            ///< of kept elements
  std::uint64_t seed = 0;
  Tensor x;
  Tensor y;
  std::uint8_t* mask = nullptr;  ///< one bit per element, 1 = kept
};

/// Writes y and mask. Element i uses byte i % 16 of the Philox4x32-10 block with counter i / 16 and key `seed`.
cudaError_t launch_dropout_fwd(const DropoutLaunch& launch, cudaStream_t stream);

/// y = mask ? x * scale : 0; reads the mask.
cudaError_t launch_dropout_bwd(const DropoutLaunch& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
