// Casts to and from FP8 with a per-tensor scale.
#pragma once

#include <cstdint>
#include <string>

#include "op/field.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// Parameters of `quantize`: x [rows, cols] to codes of `format`,
///
///   q_ij    = RN(sat(RN32(x_ij scale)))          nearest even; +-max instead of infinity beyond the largest number
///   q_t_ji  = q_ij                               with layout both or columnwise
///   amax    = max |x_ij|, NaN dropped
///   scale_inv = RN32(1 / scale)
///
/// Ports: x, scale [1, 1] (derived: the parameter, or from amax(x) as in current scaling), q [rows, cols],
/// q_t [cols, rows], amax [1, 1], scale_inv [1, 1]. Every output is defined bit for bit.
/// Source: TransformerEngine cast.h, common/util/vectorized_pointwise.h; recipe_common.cuh for the scale.
struct QuantizeParams {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::string format = "fp8_e4m3";  ///< fp8_e4m3 | fp8_e5m2
  std::string layout = "rowwise";   ///< rowwise | columnwise | both
  double scale = 0;                 ///< 0: largest number of the format / amax(x)

  template <class V>
  void describe(V& v) {
    constexpr double kMaxDim = 1 << 24;
    v.integer("rows", "r", rows, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "rows of x"});
    v.integer("cols", "c", cols, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "columns of x"});
    v.choice("format", "f", format, {"fp8_e4m3", "fp8_e5m2"}, "format of the codes");
    v.choice("layout", "lay", layout, {"rowwise", "columnwise", "both"},
             "what is written: the codes, their transpose, or both", true);
    v.number("scale", "s", scale,
             {.minimum = 0, .maximum = 1e30, .doc = "quantising scale; 0: from max |x|, as in current scaling"});
  }
};

/// Parameters of `dequantize`: y = RN(RN32(code scale_inv)), code an FP8 number of `format`.
/// Ports: q [rows, cols], q_scale_inv [1, 1], y [rows, cols] in the mode's format. Defined bit for bit.
/// Source: TransformerEngine cast.h, nvte_dequantize.
struct DequantizeParams {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::string format = "fp8_e4m3";  ///< fp8_e4m3 | fp8_e5m2

  template <class V>
  void describe(V& v) {
    constexpr double kMaxDim = 1 << 24;
    v.integer("rows", "r", rows, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "rows of q"});
    v.integer("cols", "c", cols, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "columns of q"});
    v.choice("format", "f", format, {"fp8_e4m3", "fp8_e5m2"}, "format of the codes");
  }
};

/// Parameters of `transpose`: y_ji = x_ij, bytes moved.
/// Source: TransformerEngine transpose.h, nvte_transpose.
struct TransposeParams {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::string format = "default";  ///< default (the mode's) | fp8_e4m3 | fp8_e5m2

  template <class V>
  void describe(V& v) {
    constexpr double kMaxDim = 1 << 24;
    v.integer("rows", "r", rows, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "rows of x"});
    v.integer("cols", "c", cols, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "columns of x"});
    v.choice("format", "f", format, {"default", "fp8_e4m3", "fp8_e5m2"}, "format of x; default is the mode's");
  }
};

[[nodiscard]] const Op& quantize();
[[nodiscard]] const Op& dequantize();
[[nodiscard]] const Op& transpose();

}  // namespace numcheck::op
