// The activation functions as TransformerEngine computes them in FP32, as templates over the scalar:
//
//   tolerance::Tracked  yields the bound and the variance of the error of that arithmetic
//   float               runs it: which results become NaN or infinite on the way although the exact value is not
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
using tolerance::scaled_exactly;
using tolerance::Tracked;
using tolerance::value_of;

inline double value_of(float x) {
  return static_cast<double>(x);
}
inline float exponential(float x) {
  return std::exp(x);
}
inline float scaled_exactly(float x, double power) {
  return x * static_cast<float>(power);
}

/// A result that every FP32 evaluation rounds to the same number, `distance` away from y.
template <class T>
tolerance::TrackedOf<T> certain(const T& y, const T& distance) {
  return {y, distance, distance * distance};
}

// Beyond these arguments tanh, erf and the sigmoid differ from 1 by less than 2^-25 and are 1 in FP32. Without them the
// bounds below would grow like x^3: as t is 1, nothing of its errors is left in 1 - t^2. From 9.2 on 1 is nearest to tanh, but
// a function that is off by an ulp is as good as documented, and some give 1 - 2^-24 up to 10 (NumPy's for float32).
inline constexpr double kTanhIsOne = 10.5;
inline constexpr double kErfIsOne = 4;
inline constexpr double kSigmoidIsOne = 17.4;
/// Below its negative, exp(-t) overflows and exp(t) vanishes in FP32: the sigmoid is 0, whichever of them is used. What may be
/// flushed of a subnormal one would otherwise be a bound of 2^-126 t on t s.
inline constexpr double kSigmoidIsZero = 104;

/// tanhf: 2 ulp (CUDA C++ Programming Guide, mathematical functions).
inline float saturating_tanh(float x) {
  return std::tanh(x);
}
/// `t` = tanh x, and `rest` = 1 - |t|, as they are.
template <class T>
tolerance::TrackedOf<T> saturating_tanh(const tolerance::TrackedOf<T>& x, const T& t, const T& rest) {
  using tolerance::either, tolerance::magnitude;
  return either(
      magnitude(x.y) - x.b > T(kTanhIsOne), [&] { return certain<T>(t, rest); },
      [&] { return tolerance::function_of(x, t, 1 - t * t, T(2.0)); });
}
template <class T>
tolerance::TrackedOf<T> saturating_tanh(const tolerance::TrackedOf<T>& x) {
  using tolerance::exponential_of, tolerance::hyperbolic_tangent_of, tolerance::magnitude;
  return saturating_tanh<T>(x, hyperbolic_tangent_of(x.y), 2 / (exponential_of(2 * magnitude(x.y)) + 1));
}

/// 1 - t^2 with t = tanh(z).
inline float square_complement(float /*z*/, float t) {
  return 1.0F - t * t;
}
inline Tracked square_complement(const Tracked& z, const Tracked& t) {
  if (std::fabs(z.y) - z.b > kTanhIsOne) {
    const double sech = 1 / std::cosh(z.y);
    return certain(sech * sech, sech * sech);
  }
  return Tracked(1) - t * t;
}

/// erff: 2 ulp (the same source).
inline float saturating_erf(float x) {
  return std::erf(x);
}
inline Tracked saturating_erf(const Tracked& x) {
  constexpr double kTwoOverRootPi = 1.1283791670955126;
  const double size = std::fabs(x.y);
  return size - x.b > kErfIsOne ? certain(std::erf(x.y), std::erfc(size))
                                : tolerance::function_of(x, std::erf(x.y), kTwoOverRootPi * std::exp(-x.y * x.y), 2);
}

/// How the sigmoid is computed: by expf, or by __expf, whose error grows with its argument.
enum class Sigmoid { accurate, fast };

/// s = 1 / (1 + exp(-t)). Where exp(-t) is beyond FP32, the result is 0; where the quotient is subnormal, it may be
/// flushed to 0.
inline float logistic(float t, Sigmoid /*kind*/) {
  return 1.0F / (1.0F + std::exp(-t));
}
template <class T>
tolerance::TrackedOf<T> logistic(const tolerance::TrackedOf<T>& t, Sigmoid kind) {
  using tolerance::either, tolerance::exponential_of, tolerance::TrackedOf;
  constexpr double kLargest = 0x1p127;
  const T y = 1 / (1 + exponential_of(-t.y));
  const auto between = [&] {
    const TrackedOf<T> power = tolerance::exponential(-t, kind == Sigmoid::fast);
    return either(
        power.y >= T(kLargest), [&] { return TrackedOf<T>(y, T(tolerance::kFlush), y * y); },
        [&] { return (TrackedOf<T>(T(1.0)) / (TrackedOf<T>(T(1.0)) + power)).with_underflow(tolerance::kFlush); });
  };
  return either(
      t.y - t.b > T(kSigmoidIsOne), [&] { return certain<T>(y, exponential_of(-t.y)); },
      [&] { return either(-t.y - t.b > T(kSigmoidIsZero), [&] { return certain<T>(y, y); }, between); });
}

/// 1 - s.
inline float complement(float /*t*/, float s) {
  return 1.0F - s;
}
inline Tracked complement(const Tracked& t, const Tracked& s) {
  return t.y - t.b > kSigmoidIsOne ? certain(1 / (1 + std::exp(t.y)), std::exp(-t.y)) : Tracked(1) - s;
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

/// The argument of gelu's tanh.
template <class S>
S gelu_argument(const S& x) {
  return x * (constant<S>(kGeluLinear) + constant<S>(kGeluCubic) * x * x);
}
/// From t = tanh(gelu_argument(x)).
template <class S>
S gelu(const S& x, const S& t) {
  return x * (constant<S>(0.5) + scaled_exactly(t, 0.5));
}
template <class S>
S gelu(const S& x) {
  return gelu(x, saturating_tanh(gelu_argument(x)));
}

template <class S>
S gelu_derivative(const S& x) {
  const S one = constant<S>(1);
  const S z = constant<S>(kGeluLinear) * x * (one + constant<S>(kGeluInner) * x * x);
  const S t = saturating_tanh(z);
  const S rise = square_complement(z, t) * (constant<S>(kGeluLinear) + constant<S>(kGeluSlope) * x * x);
  return scaled_exactly(x, 0.5) * rise + scaled_exactly(one + t, 0.5);
}

template <class S>
S gelu_erf(const S& x) {
  const S e = saturating_erf(constant<S>(kRootHalf) * x);
  return scaled_exactly(x, 0.5) * (constant<S>(1) + e);
}

template <class S>
S gelu_erf_derivative(const S& x) {
  const S e = saturating_erf(constant<S>(kRootHalf) * x);
  const S density = constant<S>(kNormalDensity) * exponential(scaled_exactly(x * x, -0.5));
  return scaled_exactly(constant<S>(1) + e, 0.5) + x * density;
}

/// x s(factor x) and its derivative; a factor of 1 causes no rounding.
template <class S>
S quick(const S& x, double factor, Sigmoid sigmoid) {
  return x * logistic(factor == 1 ? x : constant<S>(factor) * x, sigmoid);
}
template <class S>
S quick_derivative(const S& x, double factor, Sigmoid sigmoid) {
  const S t = factor == 1 ? x : constant<S>(factor) * x;
  const S s = logistic(t, sigmoid);
  return t * (s * complement(t, s)) + s;
}

/// f(x).
template <class S>
S value(Activation f, double x, const Clamp& clamp, Sigmoid sigmoid = Sigmoid::accurate) {
  const S exact = constant<S>(x);
  switch (f) {
    case Activation::gelu:
      return gelu(exact);
    case Activation::gelu_erf:
      return gelu_erf(exact);
    case Activation::silu:
      return quick(exact, 1, sigmoid);
    case Activation::relu:
      return constant<S>(std::fmax(x, 0.0));
    case Activation::qgelu:
      return quick(exact, kQuickFactor, sigmoid);
    case Activation::srelu:
      return x > 0 ? exact * exact : constant<S>(0);
    case Activation::clamped:
      break;
  }
  return quick(constant<S>(std::fmin(x, clamp.limit)), clamp.alpha, sigmoid);
}

/// f'(x).
template <class S>
S derivative(Activation f, double x, const Clamp& clamp, Sigmoid sigmoid = Sigmoid::accurate) {
  const S exact = constant<S>(x);
  switch (f) {
    case Activation::gelu:
      return gelu_derivative(exact);
    case Activation::gelu_erf:
      return gelu_erf_derivative(exact);
    case Activation::silu:
      return quick_derivative(exact, 1, sigmoid);
    case Activation::relu:
      return constant<S>(x > 0 ? 1 : 0);
    case Activation::qgelu:
      return quick_derivative(exact, kQuickFactor, sigmoid);
    case Activation::srelu:
      return constant<S>(std::fmax(2 * x, 0.0));
    case Activation::clamped:
      break;
  }
  return x <= clamp.limit ? quick_derivative(exact, clamp.alpha, sigmoid) : constant<S>(0);
}

/// f'(x) dy. A factor of 0 or 1 causes no rounding.
template <class S>
S gradient(Activation f, double x, double dy, const Clamp& clamp, Sigmoid sigmoid = Sigmoid::accurate) {
  const S slope = derivative<S>(f, x, clamp, sigmoid);
  const double plain = value_of(slope);
  const bool rounds_nothing =
      f == Activation::relu || (plain == 0 && (f == Activation::srelu || f == Activation::clamped));
  return rounds_nothing ? scaled_exactly(constant<S>(dy), plain) : slope * constant<S>(dy);
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
