// The activations in double against 1200 bits.
#include <gtest/gtest.h>

#ifdef NUMCHECK_HAVE_MPFR

#include <cmath>
#include <initializer_list>
#include <random>

#include "big.hpp"
#include "reference/activation_exact.hpp"

namespace numcheck::reference {
namespace {

using op::Activation;
using testing::Big;

/// A sum in 1200 bits, and the sum of its terms' magnitudes.
struct Accurate {
  double value;
  double terms;
};

Accurate sum_of(std::initializer_list<Big> terms) {
  Big sum;
  double magnitude = 0;
  for (const Big& term : terms) {
    sum = sum + term;
    magnitude += std::fabs(term.rounded());
  }
  return {sum.rounded(), magnitude};
}

Big sigmoid(const Big& t) {
  return Big(1) / (Big(1) + exp(Big(0) - t));
}

/// f(x) with the terms of the formula in FP32.
Accurate accurate_value(Activation f, double given) {
  const Big x = given;
  const Big half = x * Big(0.5);
  if (f == Activation::gelu) {
    return sum_of({half, half * tanh(x * (Big(kGeluLinear) + Big(kGeluCubic) * x * x))});
  }
  if (f == Activation::gelu_erf) {
    return sum_of({half, half * erf(Big(kRootHalf) * x)});
  }
  return sum_of({x * sigmoid(f == Activation::silu ? x : Big(kQuickFactor) * x)});
}

Accurate accurate_derivative(Activation f, double given) {
  const Big x = given;
  const Big half = 0.5;
  if (f == Activation::gelu) {
    const Big t = tanh(Big(kGeluLinear) * x * (Big(1) + Big(kGeluInner) * x * x));
    const Big rise = (Big(1) - t * t) * (Big(kGeluLinear) + Big(kGeluSlope) * x * x);
    return sum_of({half * x * rise, half, half * t});
  }
  if (f == Activation::gelu_erf) {
    const Big density = Big(kNormalDensity) * exp(Big(-0.5) * x * x);
    return sum_of({x * density, half, half * erf(Big(kRootHalf) * x)});
  }
  const Big t = f == Activation::silu ? x : Big(kQuickFactor) * x;
  const Big s = sigmoid(t);
  return sum_of({t * s, Big(0) - t * s * s, s});
}

/// The factor by which exp and erfc amplify a relative error of their argument: |argument|.
double condition(Activation f, double x) {
  const bool cubic = f == Activation::gelu;
  const double argument = cubic                       ? 2 * x * (kGeluLinear + kGeluCubic * x * x)
                          : f == Activation::gelu_erf ? x * x
                                                      : 2 * x;
  return 1 + std::fabs(argument);
}

// Within 1e-14 of the sum of the terms. The terms of the values cancel, so values must meet more: the relative error of
// the argument, because 1/2 x (1 + tanh z) in double would be completely wrong at x = -8.
TEST(ActivationPrecision, agrees_with_1200_bits) {
  std::mt19937_64 engine(11);
  std::uniform_real_distribution<double> uniform(-9, 9);
  std::uniform_real_distribution<double> exponent(-60, 4);
  for (const Activation f : {Activation::gelu, Activation::gelu_erf, Activation::silu, Activation::qgelu}) {
    for (int i = 0; i < 2000; ++i) {
      const double drawn = i % 2 == 0 ? uniform(engine) : std::copysign(std::exp2(exponent(engine)), uniform(engine));
      const double x = static_cast<double>(static_cast<float>(drawn));
      const Accurate value = accurate_value(f, x);
      const double y = exact_value(f, x, {});
      ASSERT_NEAR(y, value.value, 1e-14 * value.terms) << static_cast<int>(f) << " at " << x;
      ASSERT_NEAR(y, value.value, 1e-15 * condition(f, x) * std::fabs(value.value))
          << static_cast<int>(f) << " at " << x;
      const Accurate slope = accurate_derivative(f, x);
      ASSERT_NEAR(exact_derivative(f, x, {}), slope.value, 1e-14 * slope.terms) << static_cast<int>(f) << " at " << x;
    }
  }
}

}  // namespace
}  // namespace numcheck::reference

#endif
