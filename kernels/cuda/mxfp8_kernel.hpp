// Launcher of our own MXFP8 quantisation kernel. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/tensor.hpp"

namespace numcheck::kernels::cuda {

struct Mxfp8Launch {
  Tensor values;           ///< rows x cols, not FP8
  Tensor codes;            ///< rows x cols, FP8
  void* scales = nullptr;  ///< E8M0: rows x ceil(cols / 32), or ceil(rows / 32) x cols
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool along_rows = true;  ///< the 32 values that share a scale are neighbours in a row, else in a column
};

/// Codes and scales of the values by the rule in op/mxfp8.hpp. Any shape: blocks at the edges are smaller.
cudaError_t launch_mxfp8(const Mxfp8Launch& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
