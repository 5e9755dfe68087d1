// Launchers of our own row normalisations. Plain C++17: included by nvcc.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/tensor.hpp"

namespace numcheck::kernels::cuda {

/// gamma' = gamma [+ 1, in FP32 or rounded to gamma's format].
enum class GammaRule { plain, centred, centred_in_weight };

/// FP32 arithmetic; a row's statistics take two passes over values that stay in registers if the row fits.
struct NormForward {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  float epsilon = 0;
  GammaRule gamma_rule = GammaRule::plain;
  bool rounds_product = false;  ///< RMSNorm: x rsigma is rounded to x's format before gamma is applied
  Tensor x;                     ///< FP32, BF16 or FP16; gamma and beta have its format
  Tensor gamma;
  Tensor beta;          ///< LayerNorm only
  Tensor y;             ///< any format
  float* mu = nullptr;  ///< LayerNorm only
  float* rsigma = nullptr;
  const float* scale = nullptr;  ///< FP8 outputs: codes = sat(RN(RN32(value * scale)))
  float* amax = nullptr;         ///< FP8 outputs: raised to max |value|; initially zero
};

/// y = gamma' (rsigma (x - mu)) + beta, rsigma = rsqrt(mean((x - mu)^2) + epsilon).
cudaError_t launch_layernorm_fwd(const NormForward& launch, cudaStream_t stream);

/// y = gamma' (rsigma x), rsigma = rsqrt(mean(x^2) + epsilon).
cudaError_t launch_rmsnorm_fwd(const NormForward& launch, cudaStream_t stream);

struct NormBackward {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  GammaRule gamma_rule = GammaRule::plain;
  Tensor dz;  ///< FP32, BF16 or FP16; all tensors have its format
  Tensor x;
  Tensor gamma;
  bool adds = false;  ///< RMSNorm: a residual gradient is added to dx
  Tensor add;         ///< that gradient
  Tensor dx;
  Tensor dgamma;
  Tensor dbeta;               ///< LayerNorm only
  const float* mu = nullptr;  ///< LayerNorm only
  const float* rsigma = nullptr;
  float* partial = nullptr;       ///< partial sums of the blocks
  std::size_t partial_bytes = 0;  ///< at least layernorm_bwd_workspace() or rmsnorm_bwd_workspace()
};

/// Bytes for partial sums on the current device: one FP32 row of dgamma, and for LayerNorm one of dbeta, per block.
/// Rows, columns, x's format, gamma_rule and adds determine the kernel and hence the number of blocks; addresses are
/// not needed.
std::size_t layernorm_bwd_workspace(const NormBackward& launch);
std::size_t rmsnorm_bwd_workspace(const NormBackward& launch);

/// With xh = rsigma (x - mu) and g = gamma' dz:
///   dx = rsigma (g - (mean(g xh) xh + mean(g))), dgamma = sum(dz xh), dbeta = sum(dz) over rows.
/// Sums over rows: chains of the rows of each block, then chains of the blocks. Launch, alignment and device fix their
/// order, the device by how many blocks it holds at once. cudaErrorInvalidValue if partial_bytes is too small.
cudaError_t launch_layernorm_bwd(const NormBackward& launch, cudaStream_t stream);

/// The same without mu, mean(g) and dbeta, and with add added to dx last.
cudaError_t launch_rmsnorm_bwd(const NormBackward& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
