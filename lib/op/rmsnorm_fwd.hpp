// RMSNorm, forward.
#pragma once

#include <string>

#include "op/norm_params.hpp"

namespace numcheck::op {

/// Parameters of `rmsnorm_fwd`: for every row i of x [rows, hidden],
///
///   rsigma_i = 1 / sqrt(mean_j x_ij^2 + epsilon)
///   y_ij     = x_ij rsigma_i gamma'_j                gamma_order te
///   y_ij     = RN(x_ij rsigma_i) gamma'_j            gamma_order hf: rounded to x's format in between
///
/// Ports: x [rows, hidden], gamma [1, hidden], y [rows, hidden], rsigma [rows, 1] (FP32). FP32 arithmetic, one rounding
/// of y. With an FP8 output y = sat(RN(RN32(value * y_scale))) and y_amax = max |value|.
/// Source: TransformerEngine include/transformer_engine/normalization.h, common/normalization/rmsnorm; the order hf is
/// that of Hugging Face's LlamaRMSNorm.
struct RmsnormFwdParams : NormParams {
  std::string gamma_order = "te";  ///< te | hf
  std::string output = "default";  ///< default | fp32 | bf16 | fp16 | fp8_e4m3

  template <class V>
  void describe(V& v) {
    NormParams::describe(v);
    v.choice("gamma_order", "go", gamma_order, {"te", "hf"},
             "te: FP32 until y; hf: x rsigma is rounded to x's format before gamma is applied");
    v.choice("output", "out", output, {"default", "fp32", "bf16", "fp16", "fp8_e4m3"},
             "format of y; default is the mode's", true);
  }
};

/// The descriptor of `rmsnorm_fwd`.
[[nodiscard]] const Op& rmsnorm_fwd();

}  // namespace numcheck::op
