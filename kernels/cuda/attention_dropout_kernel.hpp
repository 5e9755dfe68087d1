// Launcher of the dropout mask of attention. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/tensor.hpp"

namespace numcheck::kernels::cuda {

struct DropoutMaskLaunch {
  std::int64_t elements = 0;
  double dropout = 0;
  std::uint64_t seed = 0;
  Tensor mask;  ///< FP32, BF16 or FP16
};

/// Writes 0 with the probability `dropout`, otherwise 1. Element i is 0 if word i % 4 of the Philox4x32-10 block with
/// counter i / 4 and key `seed` is below dropout 2^32.
cudaError_t launch_dropout_mask(const DropoutMaskLaunch& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
