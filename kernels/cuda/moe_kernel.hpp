// Launchers of the mixture-of-experts moves and of the router. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/tensor.hpp"

namespace numcheck::kernels::cuda {

struct MoeLaunch {
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  std::int64_t topk = 1;
  Tensor x;
  Tensor y;
  const std::int32_t* map = nullptr;  ///< [topk, tokens]: place of the copy, or -1
  const float* probs = nullptr;       ///< [tokens, topk]; null: every weight is 1
};

/// y[map[k][t]] = x[t]; rows that the map does not name are not written.
cudaError_t launch_moe_permute(const MoeLaunch& launch, cudaStream_t stream);

/// y[t] = sum_k probs[t][k] x[map[k][t]], k ascending; the probability, the product and the partial sum are each
/// rounded to the tensor's format, as in TransformerEngine's kernel.
cudaError_t launch_moe_unpermute(const MoeLaunch& launch, cudaStream_t stream);

enum class RouterScore { softmax_pre, softmax_post, sigmoid };

struct RouterLaunch {
  std::int64_t tokens = 0;
  int experts = 0;
  int topk = 1;
  RouterScore score = RouterScore::softmax_pre;
  float scaling = 1;
  Tensor logits;
  Tensor probs;
  std::uint8_t* map = nullptr;
};

/// See op::RouterTopkParams. FP32, expf; of equal scores, the one with the lower index is chosen.
cudaError_t launch_router_topk(const RouterLaunch& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
