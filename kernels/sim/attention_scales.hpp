// The scales of simulated FP8 attention.
#pragma once

#include <span>

#include "core/dtype.hpp"
#include "kernels/contract/backend.hpp"

namespace numcheck::kernels::sim {

struct AttentionKernel;

/// What tensors are multiplied by, 1 in modes without scales (op::has_scales).
struct AttentionScales {
  float q = 1, k = 1, v = 1, o = 1, d_o = 1;  ///< values = codes * scale
  /// Of a tensor that exists only inside the kernels: codes = sat(RN(value * scale)), value = code * inverse.
  struct Inner {
    float scale = 1, inverse = 1;
    core::Dtype format = core::Dtype::fp32;  ///< in which it is multiplied
    /// A value as it is multiplied.
    [[nodiscard]] float operand(float value) const;
  };
  Inner weights, score_gradients;

  AttentionScales(const AttentionKernel& kernel, std::span<const PortMemory> ports);
};

}  // namespace numcheck::kernels::sim
