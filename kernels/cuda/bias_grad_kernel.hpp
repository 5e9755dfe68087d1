// Launcher of our own bias gradient kernels. Plain C++17: included by nvcc.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/activation_kernel.hpp"

namespace numcheck::kernels::cuda {

struct BiasGradLaunch {
  bool fused = false;
  Function function = Function::gelu;  ///< fused: the one differentiated
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  Tensor dy;                     ///< rows x hidden
  Tensor x;                      ///< fused: rows x hidden, in the storage of dy
  Tensor dx;                     ///< rows x hidden, or no data: g is not stored
  Tensor dbias;                  ///< hidden
  const float* scale = nullptr;  ///< FP8 dx: its quantisation scale
  float* amax = nullptr;         ///< FP8 dx: raised to max |value|; initially zero
  float* partial = nullptr;      ///< bias_grad_workspace() bytes
};

/// Bytes of partial sums.
[[nodiscard]] std::size_t bias_grad_workspace(std::int64_t rows, std::int64_t hidden);

/// dbias_j = sum_i g_ij with g = dy, or g = dx = f'(x) dy before dx is rounded. FP32 sums in an order fixed by the
/// number of rows alone: slabs of rows, 8 interleaved chains in each, then 32 chains over the slabs. No float atomics.
cudaError_t launch_bias_grad(const BiasGradLaunch& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
