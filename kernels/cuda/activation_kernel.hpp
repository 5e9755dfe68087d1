// Launchers of our own activation kernels. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/tensor.hpp"

namespace numcheck::kernels::cuda {

/// The functions of op::Activation, in its order.
enum class Function { gelu, gelu_erf, silu, relu, qgelu, srelu, clamped };

/// Constants of Function::clamped.
struct Clamp {
  float limit = 0;
  float alpha = 0;
  float offset = 0;
};

struct ActivationLaunch {
  Function function = Function::gelu;
  bool gated = false;
  Clamp clamp;
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  Tensor x;                      ///< rows x hidden, or rows x 2 hidden if gated
  Tensor dy;                     ///< backward: rows x hidden, in the storage of x
  Tensor out;                    ///< y: rows x hidden; dx: like x
  const float* scale = nullptr;  ///< FP8 output: its quantisation scale
  float* amax = nullptr;         ///< FP8 output: raised to max |value|; initially zero
};

/// y = f(x), or f(a) u(b). FP32 arithmetic in TransformerEngine's order, no fast math, one rounding; the result does
/// not depend on the launch grid. x is not FP8.
cudaError_t launch_activation_fwd(const ActivationLaunch& launch, cudaStream_t stream);

/// dx = f'(x) dy, or (f'(a) dy u(b), dy f(a) where u follows b, else 0).
cudaError_t launch_activation_bwd(const ActivationLaunch& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
