// The gradient of a bias, alone and fused with the backward activation, with a cast, or both.
#pragma once

#include <cstdint>
#include <string>

#include "op/field.hpp"
#include "op/mxfp8.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// Parameters of `bias_grad`:
///
///   dbias_j = sum_i g_ij,   g = dy, or g_ij = dx_ij = dy_ij f'(x_ij) with the derivative of `fused` (ActivationKind)
///
/// Ports: dy [rows, hidden]; fused: x [rows, hidden], dx [rows, hidden]; dbias [1, hidden] in the inputs' format. FP32
/// arithmetic and partial sums in any order; the sum takes g before dx is rounded. With an FP8 dx
/// dx = sat(RN(RN32(value * dx_scale))) and dx_amax = max |value|; an MXFP8 dx is first rounded to the inputs' format
/// (mxfp8.hpp). With `cast`, and without an activation, dx is dy itself in one of these formats. An FP8 dx with layout both has
/// its transpose beside it, code by code: dx_t [hidden, rows], as kernels for weight gradients read it.
/// Source: TransformerEngine include/transformer_engine/cast.h, nvte_quantize_dbias, nvte_quantize_dbias_dgelu, ...
struct BiasGradParams {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  std::string fused = "none";
  bool cast = false;
  /// Of dx: default | fp32 | bf16 | fp16 | fp8_e4m3 | fp8_e5m2 | mxfp8_e4m3 | mxfp8_e5m2
  std::string output = "default";
  std::string layout = "rowwise";  ///< of an MXFP8 dx: rowwise | columnwise | both; of an FP8 dx: rowwise | both

  [[nodiscard]] bool has_dx() const { return fused != "none" || cast; }
  [[nodiscard]] bool has_transpose() const { return has_dx() && !is_mxfp8(output) && layout == "both"; }

  template <class V>
  void describe(V& v) {
    constexpr double kMaxRows = 1 << 24;
    constexpr double kMaxHidden = 1 << 20;
    v.integer("rows", "r", rows,
              {.minimum = 0, .maximum = kMaxRows, .required = true, .doc = "rows of dy: the terms of each sum"});
    v.integer("hidden", "h", hidden, {.minimum = 1, .maximum = kMaxHidden, .required = true, .doc = "columns of dy"});
    v.choice("fused", "fused", fused, {"none", "gelu", "silu", "relu", "qgelu", "srelu"},
             "activation whose gradient dx = dy f'(x) is taken first");
    v.boolean("cast", "cast", cast, "without an activation: dx is dy in the FP8 or MXFP8 format `output`");
    v.choice("output", "out", output,
             {"default", "fp32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "mxfp8_e4m3", "mxfp8_e5m2"},
             "format of dx; default is the mode's", true);
    v.choice("layout", "lay", layout, {"rowwise", "columnwise", "both"},
             "whether the 32 elements of an MXFP8 dx that share a scale lie in a row, in a column, or both; both of an "
             "FP8 dx: dx_t is its transpose",
             true);
  }
};

/// The descriptor of `bias_grad`.
[[nodiscard]] const Op& bias_grad();

}  // namespace numcheck::op
