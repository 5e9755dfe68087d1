// The activation functions as TransformerEngine computes them in FP32, as templates over the scalar:
//
//   tolerance::Tracked  gives the bound and the variance of the error of that arithmetic
//   float               runs it: which results are NaN or infinite on the way, though the exact value is not
//
// Source: TransformerEngine common/util/math.h and common/util/vectorized_pointwise.h (order of the factors).
#pragma once

#include <cmath>

#include "op/activation_kind.hpp"
#include "reference/activation_exact.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference::declared {

using op::Activation;
using tolerance::exponential;
using tolerance::hyperbolic_tangent;
using tolerance::scaled_exactly;
using tolerance::Tracked;

inline float exponential(float x) {
  return std::exp(x);
}
inline float hyperbolic_tangent(float x) {
  return std::tanh(x);
}
inline float scaled_exactly(float x, double power) {
  return x * static_cast<float>(power);
}

/// erff: 2 ulp (CUDA C++ Programming Guide, mathematical functions).
inline float error_function(float x) {
  return std::erf(x);
}
inline Tracked error_function(const Tracked& x) {
  constexpr double kTwoOverRootPi = 1.1283791670955126;
  return tolerance::function_of(x, std::erf(x.y), kTwoOverRootPi * std::exp(-x.y * x.y), 2);
}

/// 1 / (1 + exp(-t)). Where exp(-t) is beyond FP32 the result is 0, and where the quotient is subnormal it may be
/// flushed to 0.
inline float logistic(float t) {
  return 1.0F / (1.0F + std::exp(-t));
}
inline Tracked logistic(const Tracked& t) {
  constexpr double kLargest = 0x1p127;
  const Tracked power = exponential(-t);
  if (power.y >= kLargest) {
    const double y = 1 / (1 + power.y);
    return {y, tolerance::kFlush, y * y};
  }
  return tolerance::detail::with_underflow(Tracked(1) / (Tracked(1) + power), tolerance::kFlush);
}

/// FP32 constants.
template <class S>
S constant(double value) {
  return S(value);
}
template <>
inline float constant<float>(double value) {
  return static_cast<float>(value);
}

template <class S>
S gelu(const S& x) {
  const S z = x * (constant<S>(kGeluLinear) + constant<S>(kGeluCubic) * x * x);
  return x * (constant<S>(0.5) + scaled_exactly(hyperbolic_tangent(z), 0.5));
}

template <class S>
S gelu_derivative(const S& x) {
  const S one = constant<S>(1);
  const S z = constant<S>(kGeluLinear) * x * (one + constant<S>(kGeluInner) * x * x);
  const S t = hyperbolic_tangent(z);
  const S rise = (one - t * t) * (constant<S>(kGeluLinear) + constant<S>(kGeluSlope) * x * x);
  return scaled_exactly(x, 0.5) * rise + scaled_exactly(one + t, 0.5);
}

template <class S>
S gelu_erf(const S& x) {
  const S e = error_function(constant<S>(kRootHalf) * x);
  return scaled_exactly(x, 0.5) * (constant<S>(1) + e);
}

template <class S>
S gelu_erf_derivative(const S& x) {
  const S e = error_function(constant<S>(kRootHalf) * x);
  const S density = constant<S>(kNormalDensity) * exponential(scaled_exactly(x * x, -0.5));
  return scaled_exactly(constant<S>(1) + e, 0.5) + x * density;
}

/// x s(factor x) and its derivative; a factor of 1 costs no rounding.
template <class S>
S quick(const S& x, double factor) {
  return x * logistic(factor == 1 ? x : constant<S>(factor) * x);
}
template <class S>
S quick_derivative(const S& x, double factor) {
  const S t = factor == 1 ? x : constant<S>(factor) * x;
  const S s = logistic(t);
  return t * (s * (constant<S>(1) - s)) + s;
}

/// f(x).
template <class S>
S value(Activation f, double x, const Clamp& clamp) {
  const S exact = constant<S>(x);
  switch (f) {
    case Activation::gelu:
      return gelu(exact);
    case Activation::gelu_erf:
      return gelu_erf(exact);
    case Activation::silu:
      return quick(exact, 1);
    case Activation::relu:
      return constant<S>(std::fmax(x, 0.0));
    case Activation::qgelu:
      return quick(exact, kQuickFactor);
    case Activation::srelu:
      return x > 0 ? exact * exact : constant<S>(0);
    case Activation::clamped:
      break;
  }
  return quick(constant<S>(std::fmin(x, clamp.limit)), clamp.alpha);
}

/// f'(x) dy.
template <class S>
S gradient(Activation f, double x, double dy, const Clamp& clamp) {
  const S exact = constant<S>(x);
  const S factor = constant<S>(dy);
  switch (f) {
    case Activation::gelu:
      return gelu_derivative(exact) * factor;
    case Activation::gelu_erf:
      return gelu_erf_derivative(exact) * factor;
    case Activation::silu:
      return quick_derivative(exact, 1) * factor;
    case Activation::relu:
      return scaled_exactly(factor, x > 0 ? 1 : 0);
    case Activation::qgelu:
      return quick_derivative(exact, kQuickFactor) * factor;
    case Activation::srelu:
      return x > 0 ? scaled_exactly(exact, 2) * factor : scaled_exactly(factor, 0);
    case Activation::clamped:
      break;
  }
  return x <= clamp.limit ? quick_derivative(exact, clamp.alpha) * factor : scaled_exactly(factor, 0);
}

/// The second factor of a gated kind.
template <class S>
S factor(Activation f, double b, const Clamp& clamp) {
  if (f != Activation::clamped) {
    return constant<S>(b);
  }
  return constant<S>(std::fmin(std::fmax(b, -clamp.limit), clamp.limit)) + constant<S>(clamp.offset);
}

}  // namespace numcheck::reference::declared
