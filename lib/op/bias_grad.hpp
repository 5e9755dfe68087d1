// The gradient of a bias, alone and fused with the backward activation.
#pragma once

#include <cstdint>
#include <string>

#include "op/field.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// Parameters of `bias_grad`:
///
///   dbias_j = sum_i g_ij,   g = dy, or g_ij = dx_ij = dy_ij f'(x_ij) with the derivative of `fused` (ActivationKind)
///
/// Ports: dy [rows, hidden]; fused: x [rows, hidden], dx [rows, hidden]; dbias [1, hidden] in the inputs' format. FP32
/// arithmetic and partial sums in any order; the sum takes g before dx is rounded. With an FP8 dx
/// dx = sat(RN(RN32(value * dx_scale))) and dx_amax = max |value|.
/// Source: TransformerEngine include/transformer_engine/cast.h, nvte_quantize_dbias, nvte_quantize_dbias_dgelu, ...
struct BiasGradParams {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  std::string fused = "none";
  std::string output = "default";  ///< of dx: default | fp32 | bf16 | fp16 | fp8_e4m3 | fp8_e5m2

  template <class V>
  void describe(V& v) {
    constexpr double kMaxRows = 1 << 24;
    constexpr double kMaxHidden = 1 << 20;
    v.integer("rows", "r", rows,
              {.minimum = 0, .maximum = kMaxRows, .required = true, .doc = "rows of dy: the terms of each sum"});
    v.integer("hidden", "h", hidden, {.minimum = 1, .maximum = kMaxHidden, .required = true, .doc = "columns of dy"});
    v.choice("fused", "fused", fused, {"none", "gelu", "silu", "relu", "qgelu", "srelu"},
             "activation whose gradient dx = dy f'(x) is taken first");
    v.choice("output", "out", output, {"default", "fp32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2"},
             "format of dx; default is the mode's", true);
  }
};

/// The descriptor of `bias_grad`.
[[nodiscard]] const Op& bias_grad();

}  // namespace numcheck::op
