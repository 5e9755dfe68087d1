// Scaled, masked softmax, forward.
#pragma once

#include <cstdint>
#include <string>

#include "op/field.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// Parameters of `softmax_fwd`: for every row of x [batches * heads, sq, sk]
///
///   t_j = x_j scale, replaced where it is masked;   m = max_j t_j
///   y_j = exp(t_j - m) / sum_i exp(t_i - m)
///
/// Ports: x, mask [batches, 1, sq, sk] (uint8, 1 = masked; with mask = arbitrary only), y. FP32 arithmetic, one
/// rounding of y to the mode's format.
///
/// mask:
///   none
///   arbitrary            where the mask's byte is 1
///   causal               where column > row: not part of the row (t = -inf), y = 0
///   causal_bottom_right  where column > row + sk - sq; y = 0
/// masked_value, for arbitrary and causal_bottom_right:
///   te              t = -10000. With an arbitrary mask a row whose m is -10000 is all zeros; with causal_bottom_right
///                   a row is padded to the next power of two, and the -10000 of masked and padding elements enter m
///                   and the sum (which shows where scores are below -9900).
///   minus_infinity  t = -inf; a row whose scores are all -inf is all zeros.
/// scale_rounding:
///   as_implemented  the scale is rounded to the tensor's format (TransformerEngine's forward; its backward does not)
///   ideal           the scale is FP32
///
/// Source: TransformerEngine include/transformer_engine/softmax.h, common/fused_softmax.
struct SoftmaxFwdParams {
  std::int64_t batches = 1;
  std::int64_t heads = 1;
  std::int64_t sq = 0;
  std::int64_t sk = 0;
  double scale = 1;
  std::string mask = "none";                      ///< none | arbitrary | causal | causal_bottom_right
  std::string masked_value = "te";                ///< te | minus_infinity
  std::string scale_rounding = "as_implemented";  ///< as_implemented | ideal

  template <class V>
  void describe(V& v) {
    constexpr double kMaxOuter = 65535;
    constexpr double kMaxLength = 1 << 20;
    constexpr double kMaxScale = 65504;  // FP16 holds it
    v.integer("batches", "b", batches, {.minimum = 1, .maximum = kMaxOuter, .doc = "sequences"});
    v.integer("heads", "h", heads, {.minimum = 1, .maximum = kMaxOuter, .doc = "attention heads"});
    v.integer("sq", "sq", sq, {.minimum = 0, .maximum = kMaxLength, .required = true, .doc = "queries: rows"});
    v.integer("sk", "sk", sk, {.minimum = 1, .maximum = kMaxLength, .required = true, .doc = "keys: columns"});
    v.number("scale", "s", scale, {.minimum = -kMaxScale, .maximum = kMaxScale, .doc = "factor of the scores"});
    v.choice("mask", "mask", mask, {"none", "arbitrary", "causal", "causal_bottom_right"},
             "which scores do not count; causal starts in the top left corner");
    v.choice("masked_value", "mv", masked_value, {"te", "minus_infinity"},
             "what replaces a masked score: -10000 as TransformerEngine does, or -inf");
    v.choice("scale_rounding", "sr", scale_rounding, {"as_implemented", "ideal"},
             "as_implemented rounds the scale to the tensor's format first");
  }
};

/// The descriptor of `softmax_fwd`.
[[nodiscard]] const Op& softmax_fwd();

}  // namespace numcheck::op
