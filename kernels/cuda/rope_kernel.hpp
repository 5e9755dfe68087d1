// Launcher of the rotary position embedding. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/tensor.hpp"

namespace numcheck::kernels::cuda {

struct RopeLaunch {
  std::int64_t seq = 0;
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  int dim = 0;
  int rotated = 0;
  bool interleaved = false;
  bool batch_first = false;  ///< bshd: the tokens of a sequence are adjacent in memory
  bool backward = false;
  Tensor x;                              ///< fp32, bf16 or fp16
  Tensor y;                              ///< as x
  const float* freqs = nullptr;          ///< angles, `rotated` per row
  const std::int32_t* starts = nullptr;  ///< row of each sequence's first token; null: 0
};

/// See op::RopeParams. cosf and sinf in FP32, one rounding of y.
cudaError_t launch_rope(const RopeLaunch& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
