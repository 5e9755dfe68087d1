#include "reference/activation_exact.hpp"

#include <cmath>

namespace numcheck::reference {
namespace {

using op::Activation;

double logistic(double t) {
  return 1 / (1 + std::exp(-t));
}

/// d/dx of x s(factor x); 1 - s(t) is s(-t).
double quick_derivative(double x, double factor) {
  const double t = factor * x;
  return t * logistic(t) * logistic(-t) + logistic(t);
}

/// With s = s(2 z): (1 + tanh z)/2 = s and 1 - tanh(z)^2 = 4 s (1 - s).
double gelu_derivative(double x) {
  const double z = kGeluLinear * x * (1 + kGeluInner * x * x);
  const double s = logistic(2 * z);
  return 2 * x * s * logistic(-2 * z) * (kGeluLinear + kGeluSlope * x * x) + s;
}

double erf_derivative(double x) {
  return std::erfc(-kRootHalf * x) / 2 + x * kNormalDensity * std::exp(-x * x / 2);
}

}  // namespace

double exact_value(Activation f, double x, const Clamp& clamp) {
  switch (f) {
    case Activation::gelu:
      return exact_gelu(x);
    case Activation::gelu_erf:
      return x / 2 * std::erfc(-kRootHalf * x);
    case Activation::silu:
      return exact_quick(x, 1);
    case Activation::relu:
      return std::fmax(x, 0.0);
    case Activation::qgelu:
      return exact_quick(x, kQuickFactor);
    case Activation::srelu:
      return x > 0 ? x * x : 0;
    case Activation::clamped:
      break;
  }
  const double m = std::fmin(x, clamp.limit);
  return exact_quick(m, clamp.alpha);
}

double exact_derivative(Activation f, double x, const Clamp& clamp) {
  switch (f) {
    case Activation::gelu:
      return gelu_derivative(x);
    case Activation::gelu_erf:
      return erf_derivative(x);
    case Activation::silu:
      return quick_derivative(x, 1);
    case Activation::relu:
      return x > 0 ? 1 : 0;
    case Activation::qgelu:
      return quick_derivative(x, kQuickFactor);
    case Activation::srelu:
      return std::fmax(2 * x, 0.0);
    case Activation::clamped:
      break;
  }
  return x <= clamp.limit ? quick_derivative(x, clamp.alpha) : 0;
}

double exact_factor(Activation f, double b, const Clamp& clamp) {
  return f == Activation::clamped ? std::fmin(std::fmax(b, -clamp.limit), clamp.limit) + clamp.offset : b;
}

bool factor_follows(Activation f, double b, const Clamp& clamp) {
  return f != Activation::clamped || (b <= clamp.limit && b >= -clamp.limit);
}

}  // namespace numcheck::reference
