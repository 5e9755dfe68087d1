// Which products may overflow, and what becomes of them.
#pragma once

#include <string_view>

#include "core/dtype.hpp"
#include "model/error_model.hpp"
#include "op/gemm.hpp"

namespace numcheck::tolerance {

/// What overflow depends on besides the request.
struct OverflowFacts {
  core::Dtype operands = core::Dtype::fp32;  ///< format in which the first one is multiplied
  bool fp32_storage = false;                 ///< in which operands are stored
  bool fp16_sums = false;
  double scale = 1;  ///< |alpha sA sB|
  double unit =
      1;  ///< in which sums are counted before they are scaled: sums of codes do not overflow, whatever scales they have
  double enlargement = 1;  ///< factor by which rounding operands may enlarge |a b|
};

/// Sets what the model says of overflow: the A from which partial sums may overflow, with a margin for their own rounding,
/// and whether infinities may meet. With alpha = 0 nothing is multiplied, and only C and bias may overflow; but 0 times scales whose
/// product is infinite is NaN.
void add_overflow(const model::ModelRequest& request, const op::GemmParams& p, std::string_view port,
                  const OverflowFacts& facts, model::ErrorModel& model);

}  // namespace numcheck::tolerance
