// LayerNorm, forward.
#pragma once

#include <string>

#include "op/norm_params.hpp"

namespace numcheck::op {

/// Parameters of `layernorm_fwd`: for every row i of x [rows, hidden],
///
///   mu_i     = mean_j x_ij
///   rsigma_i = 1 / sqrt(mean_j (x_ij - mu_i)^2 + epsilon)
///   y_ij     = gamma'_j rsigma_i (x_ij - mu_i) + beta_j
///
/// Ports: x [rows, hidden], gamma and beta [1, hidden], y [rows, hidden], mu and rsigma [rows, 1] (FP32). FP32
/// arithmetic, two-pass variance, one rounding of y. With an FP8 output y = sat(RN(RN32(value * y_scale))) and
/// y_amax = max |value|.
/// Source: TransformerEngine include/transformer_engine/normalization.h, common/normalization/layernorm.
struct LayernormFwdParams : NormParams {
  std::string output = "default";  ///< default | fp32 | bf16 | fp16 | fp8_e4m3

  template <class V>
  void describe(V& v) {
    NormParams::describe(v);
    v.choice("output", "out", output, {"default", "fp32", "bf16", "fp16", "fp8_e4m3"},
             "format of y; default is the mode's", true);
  }
};

/// The descriptor of `layernorm_fwd`.
[[nodiscard]] const Op& layernorm_fwd();

}  // namespace numcheck::op
