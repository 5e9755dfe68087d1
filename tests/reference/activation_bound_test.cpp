// How tight the error bounds of the activations are for FP32 arithmetic, and where nothing is judged.
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "activation_problem.hpp"
#include "reference/activation_declared.hpp"

namespace numcheck::reference {
namespace {

using op::Activation;
using op::ActivationParams;
using testing::backward;
using testing::forward;
using testing::value_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Clamp kClamp{7, static_cast<double>(1.702F), 1};

ActivationParams kind(const std::string& name) {
  return {.kind = name};
}

/// Largest |computed - y| / (B + half an ulp) of the declared formula in FP32 on this machine.
template <class Inputs>
double largest_over_bound(const op::Values& values, const Inputs& computed) {
  const op::OutputValues& out = values.outputs[0];
  double worst = 0;
  for (std::size_t i = 0; i < out.value.size(); ++i) {
    const double error = std::fabs(static_cast<double>(computed(i)) - out.value[i]);
    const double bound = static_cast<double>(out.magnitude[i]);
    worst = error == 0 ? worst : std::max(worst, error / bound);
  }
  return worst;
}

std::vector<double> spread_inputs(std::size_t count, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> exponent(-40, 7);
  std::vector<double> x(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double wide = std::exp2(exponent(engine)) * (i % 4 < 2 ? 1 : -1);
    x[i] = static_cast<double>(static_cast<float>(i % 2 == 0 ? 3 * normal(engine) : wide));
  }
  return x;
}

// The bound holds and is tight: a bound that FP32 never comes near would hide faults.
TEST(ActivationBound, holds_for_fp32_arithmetic_and_is_tight) {
  const std::vector<double> x = spread_inputs(20000, 5);
  for (const char* name : {"gelu", "gelu_erf", "silu", "qgelu", "srelu"}) {
    const Activation f = op::activation_kind(name).function;
    const double over = largest_over_bound(forward(kind(name), x),
                                           [&](std::size_t i) { return declared::value<float>(f, x[i], kClamp); });
    EXPECT_LE(over, 1) << name;
    EXPECT_GE(over, 0.2) << name;
    const std::vector<double> dy = spread_inputs(x.size(), 6);
    const double over_gradient = largest_over_bound(
        backward(kind(name), dy, x), [&](std::size_t i) { return declared::gradient<float>(f, x[i], dy[i], kClamp); });
    EXPECT_LE(over_gradient, 1) << name;
    EXPECT_GE(over_gradient, 0.2) << name;
  }
}

// The sigmoid's exponential overflows below -88.72: the device gives -0, which the bound allows.
TEST(ActivationBound, allows_the_underflow_of_silu) {
  const std::vector<double> x = {-88.8, -90, -95, -103};
  const op::Values values = forward(kind("silu"), x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const op::OutputValues& y = values.outputs[0];
    EXPECT_LT(y.value[i], 0);
    EXPECT_GE(static_cast<double>(y.magnitude[i]), -y.value[i]);
    EXPECT_LE(static_cast<double>(y.magnitude[i]), 0x1p-118);
  }
}

// tanh and the sigmoid are 1 in FP32 for large arguments: their errors must not count there, multiplied by x^3.
TEST(ActivationBound, is_small_where_the_function_saturates) {
  for (const char* name : {"gelu", "gelu_erf", "silu", "qgelu"}) {
    for (const double x : {25.0, 1000.0, 0x1p40}) {
      const op::Values values = backward(kind(name), {1}, {x});
      EXPECT_NEAR(value_of(values)[0], 1, 1e-9) << name;
      EXPECT_LE(static_cast<double>(values.outputs[0].magnitude[0]), 0x1p-21) << name << " " << x;
    }
    const op::Values values = backward(kind(name), {1}, {-1000});
    EXPECT_LE(static_cast<double>(values.outputs[0].magnitude[0]), 0x1p-100) << name;
  }
  for (const char* name : {"silu", "qgelu"}) {
    const op::Values huge = backward(kind(name), {1}, {-0x1p124});  // exp(-x) overflows: the sigmoid is 0
    EXPECT_LE(static_cast<double>(huge.outputs[0].magnitude[0]), 0x1p-100) << name;
  }
}

// Near -5.1 the slope of gelu is what is left of 1 + tanh: nothing, or 2^-25. Times infinity, or beyond FP32, the result
// can be anything.
TEST(ActivationBackward, a_slope_of_unknown_sign_is_not_judged_beyond_fp32) {
  for (const double dy : {kInfinity, 3e38}) {
    const op::Values values = backward(kind("geglu"), {dy}, {-5.15, 3e38});
    EXPECT_TRUE(std::isfinite(value_of(values)[0])) << dy;
    EXPECT_TRUE(std::isnan(values.outputs[0].magnitude[0])) << dy;
  }
  EXPECT_EQ(value_of(backward(kind("geglu"), {kInfinity}, {1, 1}))[0], kInfinity);
}

// FP32 cannot tell where a value within its bound of the largest number ends up.
TEST(ActivationForward, the_border_of_fp32_is_not_judged) {
  const double largest = std::numeric_limits<float>::max();
  const op::Values values = forward(kind("swiglu"), {1, largest / 0.7310585786300049});
  EXPECT_TRUE(std::isfinite(value_of(values)[0]));
  EXPECT_TRUE(std::isnan(values.outputs[0].magnitude[0]));
}

}  // namespace
}  // namespace numcheck::reference
