// The activation functions in double, by formulas without cancellation where TransformerEngine's in FP32 have it.
#pragma once

#include "op/activation_kind.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {

/// Constants of TransformerEngine's formulas: FP32 numbers.
inline constexpr double kGeluLinear = static_cast<double>(0.79788456F);
inline constexpr double kGeluCubic = static_cast<double>(0.03567741F);      ///< 0.79788456 * 0.044715
inline constexpr double kGeluInner = static_cast<double>(0.044715F);        ///< of the derivative's argument
inline constexpr double kGeluSlope = static_cast<double>(0.1070322243F);    ///< 3 * kGeluCubic
inline constexpr double kQuickFactor = static_cast<double>(1.702F);         ///< of qgelu
inline constexpr double kRootHalf = static_cast<double>(0.70710678F);       ///< 1 / sqrt(2)
inline constexpr double kNormalDensity = static_cast<double>(0.39894228F);  ///< 1 / sqrt(2 pi)

/// Constants of clamped_swiglu: FP32 numbers.
struct Clamp {
  double limit = 0;
  double alpha = 0;
  double offset = 0;
};

/// x (1 + tanh z) / 2 without cancellation, over a number.
template <class T>
T exact_gelu(const T& x) {
  using tolerance::exponential_of;
  return x / (1 + exponential_of(-2 * x * (kGeluLinear + kGeluCubic * x * x)));
}

/// x s(factor x)
template <class T>
T exact_quick(const T& x, double factor) {
  using tolerance::exponential_of;
  return x / (1 + exponential_of(-factor * x));
}

/// f(x) of op::Activation.
[[nodiscard]] double exact_value(op::Activation f, double x, const Clamp& clamp);

/// f'(x) of op::Activation.
[[nodiscard]] double exact_derivative(op::Activation f, double x, const Clamp& clamp);

/// The second factor of a gated kind: b, or min(max(b, -limit), limit) + offset.
[[nodiscard]] double exact_factor(op::Activation f, double b, const Clamp& clamp);

/// Derivative of the second factor, 0 or 1.
[[nodiscard]] bool factor_follows(op::Activation f, double b, const Clamp& clamp);

}  // namespace numcheck::reference
