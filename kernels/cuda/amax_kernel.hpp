// Launcher of the kernels for amaxes. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/tensor.hpp"

namespace numcheck::kernels::cuda {

/// See op::AmaxParams.
struct AmaxLaunch {
  Tensor x;  ///< fp32, bf16 or fp16
  std::int64_t elements = 0;
  float* amax = nullptr;              ///< one number
  float* scale = nullptr;             ///< one number; null: not written
  Storage codes = Storage::fp8_e4m3;  ///< format that the scale is for
  float epsilon = 0;                  ///< least amax
  bool power_of_two = false;          ///< the scale is rounded down to one
};

/// amax = max |x| with NaN dropped, whatever it was before; then the scale.
cudaError_t launch_amax(const AmaxLaunch& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
