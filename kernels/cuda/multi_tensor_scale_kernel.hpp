// Launcher of the kernel that computes scales of many tensors. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/tensor.hpp"

namespace numcheck::kernels::cuda {

/// See op::MultiTensorScaleParams. The tensors lie one after another.
struct MultiTensorScaleLaunch {
  const float* amaxes = nullptr;
  float* scales = nullptr;
  float* scale_invs = nullptr;
  std::int64_t count = 0;             ///< of all amaxes
  Storage codes = Storage::fp8_e4m3;  ///< format that the scales are for
  float epsilon = 0;                  ///< least amax
  bool power_of_two = false;          ///< scales are rounded down to one
};

cudaError_t launch_multi_tensor_scale(const MultiTensorScaleLaunch& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
