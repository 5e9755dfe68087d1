// The largest magnitude of a tensor, and the FP8 scale that follows from it.
#pragma once

#include <cstdint>
#include <string>

#include "op/field.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// Parameters of `amax`, the first half of current scaling:
///
///   amax  = max |x_ij|                    NaN dropped; 0 if x has no elements, or only NaN
///
/// and with a format of codes, MAX = 448 or 57344 its largest number:
///
///   a     = max(amax, epsilon)            in FP32
///   scale = 1                             if a is 0 or infinite
///           RN32(MAX / a)                 otherwise; FLT_MAX if that overflows
///           its mantissa cleared          with power_of_two, so that it is rounded down
///
/// Ports: x [rows, cols] in the mode's format; amax [1, 1] and, with a format, scale [1, 1], both FP32. Both are defined bit
/// for bit: magnitudes of BF16 and FP16 numbers are FP32 numbers, subnormal ones are kept, and a maximum that drops NaN is the
/// same in any order. TransformerEngine takes it in x's format, by fmaxf or __hmax, from 0 on, so that NaN never gets into a
/// partial maximum. It does not write scale_inv here; the cast that follows does (`quantize`).
/// Source: TransformerEngine recipe.h, nvte_compute_amax and nvte_compute_scale_from_amax; common/recipe/current_scaling.cu,
/// common/recipe/recipe_common.cuh.
struct AmaxParams {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::string format = "none";  ///< none | fp8_e4m3 | fp8_e5m2
  double epsilon = 0;           ///< an FP32 number
  bool power_of_two = false;

  template <class V>
  void describe(V& v) {
    constexpr double kMaxDim = 1 << 24;
    v.integer("rows", "r", rows, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "rows of x"});
    v.integer("cols", "c", cols, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "columns of x"});
    v.choice("format", "f", format, {"none", "fp8_e4m3", "fp8_e5m2"},
             "format that the scale is for; none: only the amax");
    v.number("epsilon", "eps", epsilon,
             {.minimum = 0, .maximum = 1e30, .doc = "least amax that the scale follows from"});
    v.boolean("power_of_two", "p2", power_of_two, "the scale is rounded down to a power of two");
  }

  [[nodiscard]] bool has_scale() const noexcept { return format != "none"; }
};

/// The descriptor of `amax`.
[[nodiscard]] const Op& amax();

}  // namespace numcheck::op
