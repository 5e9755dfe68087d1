// What the parts of GEMM's error model share: a request with everything that is derived from it.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/dtype.hpp"
#include "model/error_model.hpp"
#include "op/field.hpp"
#include "op/gemm.hpp"
#include "tolerance/chain_drift.hpp"

namespace numcheck::tolerance {

[[nodiscard]] inline double unit_of(core::Dtype dtype) {
  return core::dtype_info(dtype).unit_roundoff;
}

[[nodiscard]] inline bool is_power_of_two(double x) {
  int exponent = 0;
  return std::abs(std::frexp(x, &exponent)) == 0.5;
}

struct GemmRequest {
  const model::ModelRequest& request;
  op::GemmParams p;
  std::int64_t products = 0;  ///< of a sum: k, or none if alpha is 0
  double product_scale = 1;   ///< |alpha sA sB|
  bool is_fp32_storage = false;
  model::PrecisionClass operands = model::PrecisionClass::native;
  core::Dtype first = core::Dtype::fp32;  ///< formats in which the operands are multiplied
  core::Dtype second = core::Dtype::fp32;
  bool fp32_chain = false;  ///< whatever the mode
  bool runs = false;        ///< signs come in runs, so that partial sums may be as large as A
  double cancelled = 0;     ///< partial sums may be that large a part of A whatever y is; 0: they are as y is

  explicit GemmRequest(const model::ModelRequest& r) : request(r), p(op::from_params<op::GemmParams>(*r.params)) {
    products = p.alpha == 0 ? 0 : p.k;
    product_scale = std::abs(p.alpha * r.first_scale * r.second_scale);
    is_fp32_storage = r.mode->first == core::Dtype::fp32;
    fp32_chain = r.arithmetic == model::MatrixArithmetic::fp32_chain;
    operands = !is_fp32_storage ? model::PrecisionClass::native : fp32_chain ? model::PrecisionClass::fp32 : r.expected;
    first = is_fp32_storage ? converted() : r.mode->first;
    second = is_fp32_storage ? converted() : r.mode->second;
    // The mean of the sum is r A. Only if it exceeds the spread sqrt(S2) can something else cancel it: A^2 <= k S2.
    cancelled =
        parts_from_sum() && mean_square() >= 1 ? std::abs(r.first_pattern.coherence * r.second_pattern.coherence) : 0;
    runs = r.first_pattern.order == data::Order::signed_runs || r.second_pattern.order == data::Order::signed_runs;
    cancelled = runs ? 1 : cancelled;
  }

  /// Whether y is another number than the products' sum, times a factor.
  [[nodiscard]] bool parts_from_sum() const { return p.beta != 0 || p.bias || p.epilogue == "gelu"; }
  /// Of the products' sums, in units of S2, at most.
  [[nodiscard]] double mean_square() const {
    return std::pow(request.first_pattern.coherence * request.second_pattern.coherence, 2) *
           static_cast<double>(products);
  }
  [[nodiscard]] core::Dtype converted() const {
    switch (operands) {
      case model::PrecisionClass::fp32:
        return core::Dtype::fp32;
      case model::PrecisionClass::bf16_inputs:
        return core::Dtype::bf16;
      default:
        return core::Dtype::tf32;
    }
  }
  /// Whether the conversion of FP32 operands is part of y, and none of the error.
  [[nodiscard]] bool conversion_known() const {
    return request.converted && is_fp32_storage && first != core::Dtype::fp32;
  }
  [[nodiscard]] bool plain_fp32() const { return fp32_chain || first == core::Dtype::fp32; }
  [[nodiscard]] bool accumulates_fp16() const { return request.mode->compute == op::Compute::fp16 && !fp32_chain; }
  /// Sums of both signs do not drift: their partial sums pass through zero again and again. Two signs in runs may be one.
  [[nodiscard]] double drift() const {
    const bool one_sign = runs || request.first_pattern.coherence * request.second_pattern.coherence > 0;
    const bool known = request.first != nullptr && request.second != nullptr;
    return known && one_sign && products != 0 ? chain_drift(p, *request.first, *request.second) : 0;
  }
  /// Products of random signs that nothing orders: neither operand's values repeat or share a sign.
  [[nodiscard]] bool cancels() const {
    const auto random = [](const data::Pattern& pattern) {
      return pattern.order == data::Order::random && pattern.coherence == 0 && !pattern.few_values;
    };
    return random(request.first_pattern) && random(request.second_pattern);
  }
  /// Factor by which rounding to the format in which they are multiplied may enlarge |a b| of what y is made of.
  [[nodiscard]] double enlargement() const {
    const op::Mode& mode = *request.mode;
    if (is_fp32_storage) {
      return conversion_known() ? std::pow(1 + unit_of(first), 2) : 1;
    }
    return (1 + unit_of(mode.first)) * (1 + unit_of(mode.second)) * (1 + 0x1p-22);
  }
  /// Unit roundoff of scaling, addend and bias.
  [[nodiscard]] double epilogue_unit() const {
    return accumulates_fp16() ? unit_of(core::Dtype::fp16) : unit_of(core::Dtype::fp32);
  }
};

}  // namespace numcheck::tolerance
