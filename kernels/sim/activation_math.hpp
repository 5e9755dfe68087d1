// The activation functions on a simulated device: TransformerEngine's formulas in FP32, with their planted faults.
#pragma once

#include <string_view>

#include "op/activation_kind.hpp"
#include "op/activation_params.hpp"

namespace numcheck::kernels::sim {

/// Faults of the functions, by name:
///   erf_for_tanh      gelu with the error function
///   tanh_for_erf      gelu_erf with the hyperbolic tangent
///   gelu_constant     0.04 instead of 0.044715
///   factor_2_missing  gelu: x s(z) instead of x s(2z) = x (1/2 + 1/2 tanh z); srelu: derivative x instead of 2x
///   bf16_intermediate the value of tanh, erf or the sigmoid is rounded to BF16
///   derivative_sign   the part of the derivative that comes from tanh, erf or the sigmoid is subtracted
///   clamp_missing     the clamped gate is not clamped
enum class MathFault {
  none,
  erf_for_tanh,
  tanh_for_erf,
  gelu_constant,
  factor_2_missing,
  bf16_intermediate,
  derivative_sign,
  clamp_missing,
};

/// The fault with that name; none if it is not a fault of the functions.
[[nodiscard]] MathFault math_fault(std::string_view name);

struct ActivationMath {
  op::Activation function = op::Activation::gelu;
  float limit = 0;
  float alpha = 0;
  float offset = 0;
  MathFault fault = MathFault::none;

  [[nodiscard]] float value(float x) const;
  [[nodiscard]] float derivative(float x) const;
  /// The second factor of a gated kind.
  [[nodiscard]] float factor(float b) const;
  /// Whether the second factor varies with b there: it is not clamped.
  [[nodiscard]] bool factor_follows(float b) const;
};

/// The math of a case of activation_fwd or activation_bwd.
[[nodiscard]] ActivationMath activation_math(const op::ActivationParams& params, std::string_view fault);

}  // namespace numcheck::kernels::sim
