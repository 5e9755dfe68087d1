// Scaled, masked softmax, backward.
#pragma once

#include <cstdint>
#include <string>

#include "op/field.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// Parameters of `softmax_bwd`: for every row of dy and y [batches * heads, sq, sk]
///
///   dx_j = scale (dy_j y_j - y_j sum_i dy_i y_i)
///
/// Ports: dy, y (derived: the softmax of its own draws with these parameters, rounded to the format), dx. FP32
/// arithmetic with the FP32 scale, one rounding of dx to the mode's format. A causal mask leaves zeros right of its
/// diagonal without reading dy there; with other masks y itself is zero where scores did not count.
/// `mask` and `masked_value` are those of softmax_fwd.
/// Source: TransformerEngine include/transformer_engine/softmax.h, common/fused_softmax.
struct SoftmaxBwdParams {
  std::int64_t batches = 1;
  std::int64_t heads = 1;
  std::int64_t sq = 0;
  std::int64_t sk = 0;
  double scale = 1;
  std::string mask = "none";        ///< none | arbitrary | causal | causal_bottom_right
  std::string masked_value = "te";  ///< te | minus_infinity

  template <class V>
  void describe(V& v) {
    constexpr double kMaxOuter = 65535;
    constexpr double kMaxLength = 1 << 20;
    constexpr double kMaxScale = 65504;
    v.integer("batches", "b", batches, {.minimum = 1, .maximum = kMaxOuter, .doc = "sequences"});
    v.integer("heads", "h", heads, {.minimum = 1, .maximum = kMaxOuter, .doc = "attention heads"});
    v.integer("sq", "sq", sq, {.minimum = 0, .maximum = kMaxLength, .required = true, .doc = "queries: rows"});
    v.integer("sk", "sk", sk, {.minimum = 1, .maximum = kMaxLength, .required = true, .doc = "keys: columns"});
    v.number("scale", "s", scale, {.minimum = -kMaxScale, .maximum = kMaxScale, .doc = "factor of the scores"});
    v.choice("mask", "mask", mask, {"none", "arbitrary", "causal", "causal_bottom_right"},
             "which scores did not count in the forward pass");
    v.choice("masked_value", "mv", masked_value, {"te", "minus_infinity"},
             "what replaced a masked score in the forward pass");
  }
};

/// The descriptor of `softmax_bwd`.
[[nodiscard]] const Op& softmax_bwd();

}  // namespace numcheck::op
