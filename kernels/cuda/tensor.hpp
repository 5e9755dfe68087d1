// A dense tensor in device memory, as the launchers expect it. Plain C++17: included by nvcc.
#pragma once

#include "kernels/cuda/storage.hpp"

namespace numcheck::kernels::cuda {

struct Tensor {
  void* data = nullptr;  ///< first element; null: the op has no such tensor
  Storage storage = Storage::fp32;
};

}  // namespace numcheck::kernels::cuda
