// The activation functions on a simulated device: TransformerEngine's formulas in FP32, with their planted faults.
#pragma once

#include <string_view>

#include "op/activation_kind.hpp"
#include "op/activation_params.hpp"

namespace numcheck::kernels::sim {

/// Faults of the functions, by name:
///   erf_for_tanh      gelu by the error function
///   tanh_for_erf      gelu_erf by the hyperbolic tangent
///   gelu_constant     0.04 for 0.044715
///   factor_2_missing  gelu: x s(z) for x s(2z), which is x (1/2 + 1/2 tanh z); srelu: x for 2x in the derivative
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

/// The fault of that name; none if it is no fault of the functions.
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
  /// Whether the second factor follows b there.
  [[nodiscard]] bool factor_follows(float b) const;
};

/// The math of a case of activation_fwd or activation_bwd.
[[nodiscard]] ActivationMath activation_math(const op::ActivationParams& params, std::string_view fault);

}  // namespace numcheck::kernels::sim
