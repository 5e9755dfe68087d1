// The references of the activations by hand and by finite differences.
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "activation_problem.hpp"
#include "reference/activation_settle.hpp"

namespace numcheck::reference {
namespace {

using op::Activation;
using op::ActivationParams;
using testing::backward;
using testing::forward;
using testing::value_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

constexpr Activation kFunctions[] = {Activation::gelu,  Activation::gelu_erf, Activation::silu,   Activation::relu,
                                     Activation::qgelu, Activation::srelu,    Activation::clamped};
constexpr Clamp kClamp{7, static_cast<double>(1.702F), 1};

ActivationParams kind(const std::string& name) {
  return {.kind = name};
}

TEST(ActivationForward, known_points) {
  EXPECT_EQ(value_of(forward(kind("relu"), {-1, 0, 2})), (std::vector<double>{0, 0, 2}));
  EXPECT_EQ(value_of(forward(kind("srelu"), {-3, 0, 3})), (std::vector<double>{0, 0, 9}));
  EXPECT_EQ(value_of(forward(kind("gelu"), {0})), (std::vector<double>{0}));
  const double e = std::exp(1.0);
  EXPECT_NEAR(value_of(forward(kind("silu"), {1}))[0], e / (1 + e), 1e-15);
  EXPECT_NEAR(value_of(forward(kind("gelu_erf"), {1}))[0], 0.8413447460685429,
              1e-8);  // Phi(1); 1/sqrt(2) is an FP32 number
  EXPECT_NEAR(value_of(forward(kind("gelu"), {1}))[0], 0.8411919906082768, 1e-8);  // with sqrt(2/pi) and 0.044715
  EXPECT_NEAR(value_of(forward(kind("qgelu"), {1}))[0], 0.8457957659328212, 1e-8);
}

TEST(ActivationForward, gate_is_the_first_half) {
  EXPECT_EQ(value_of(forward(kind("reglu"), {-1, 2, 3, 10, 20, 30})), (std::vector<double>{0, 40, 90}));
  EXPECT_EQ(value_of(forward(kind("sreglu"), {-1, 2, 3, 10, 20, 30})), (std::vector<double>{0, 80, 270}));
}

TEST(ActivationForward, rows_of_a_gated_kind_hold_both_halves) {
  ActivationParams p = kind("reglu");
  p.rows = 2;
  p.hidden = 1;
  const op::Values y =
      testing::run_reference(op::activation_fwd(), activation_fwd_reference(), op::to_params(p), {{"x", {2, 3, 4, 5}}});
  EXPECT_EQ(value_of(y), (std::vector<double>{6, 20}));
}

// A limit of 2: a is clamped above, b on both sides, and the offset is added after that.
TEST(ActivationForward, clamped) {
  ActivationParams p = kind("clamped_swiglu");
  p.limit = 2;
  p.alpha = 0;  // the sigmoid is 1/2
  p.offset = 3;
  EXPECT_EQ(value_of(forward(p, {5, -5, 1, 5, -5, 1})), (std::vector<double>{1 * 5.0, -2.5 * 1, 0.5 * 4}));
}

// TransformerEngine takes them as floats.
TEST(ActivationForward, constants_are_fp32_numbers) {
  ActivationParams p = kind("clamped_swiglu");
  p.limit = 0.1;
  p.alpha = 1.702;
  p.offset = 0.3;
  const Clamp clamp = clamp_of(p);
  EXPECT_EQ(clamp.limit, static_cast<double>(0.1F));
  EXPECT_EQ(clamp.alpha, static_cast<double>(1.702F));
  EXPECT_EQ(clamp.offset, static_cast<double>(0.3F));
}

TEST(ActivationForward, nan_rules) {
  EXPECT_EQ(value_of(forward(kind("relu"), {kNan}))[0], 0);
  EXPECT_EQ(value_of(forward(kind("srelu"), {kNan}))[0], 0);
  for (const char* name : {"gelu", "gelu_erf", "silu", "qgelu"}) {
    EXPECT_TRUE(std::isnan(value_of(forward(kind(name), {kNan}))[0])) << name;
  }
  ActivationParams p = kind("clamped_swiglu");
  p.alpha = 0;
  EXPECT_EQ(value_of(forward(p, {kNan, 1}))[0], 3.5 * 2);   // min(NaN, 7) s(0) (1 + 1)
  EXPECT_EQ(value_of(forward(p, {2, kNan}))[0], 1 * -6.0);  // 2 s(0) (-7 + 1)
}

// Where FP32 meets infinity times zero, the op is defined by it.
TEST(ActivationForward, infinities_as_in_fp32) {
  for (const char* name : {"gelu", "gelu_erf", "silu", "qgelu"}) {
    EXPECT_EQ(value_of(forward(kind(name), {kInfinity}))[0], kInfinity) << name;
    EXPECT_TRUE(std::isnan(value_of(forward(kind(name), {-kInfinity}))[0])) << name;
  }
  EXPECT_EQ(value_of(forward(kind("srelu"), {1e30}))[0], kInfinity);
  EXPECT_TRUE(std::isnan(value_of(forward(kind("reglu"), {-1, kInfinity}))[0]));
  // s(-100) is 0 in FP32 and 0 times infinity is NaN; with an exponential of wider range it would be infinite.
  const op::Values swiglu = forward(kind("swiglu"), {-100, kInfinity});
  EXPECT_TRUE(std::isnan(swiglu.outputs[0].magnitude[0]));
}

TEST(ActivationBackward, known_points) {
  EXPECT_EQ(value_of(backward(kind("relu"), {5, 5, 5}, {-1, 0, 2})), (std::vector<double>{0, 0, 5}));
  EXPECT_EQ(value_of(backward(kind("srelu"), {5, 5}, {-1, 3})), (std::vector<double>{0, 30}));
  EXPECT_EQ(value_of(backward(kind("gelu"), {4}, {0})), (std::vector<double>{2}));
  EXPECT_EQ(value_of(backward(kind("silu"), {4}, {0})), (std::vector<double>{2}));
  EXPECT_EQ(value_of(backward(kind("sreglu"), {5, 5}, {-1, 3, 10, 20})), (std::vector<double>{0, 600, 0, 45}));
}

TEST(ActivationBackward, clamped_halves_get_no_gradient) {
  ActivationParams p = kind("clamped_swiglu");
  p.limit = 2;
  p.alpha = 0;
  const std::vector<double> dx = value_of(backward(p, {1, 1, kInfinity}, {3, 1, 1, 1, -2.5, 5}));
  EXPECT_EQ(dx[0], 0);                // a > limit
  EXPECT_EQ(dx[1], 0.5 * -1);         // s(0) (b clamped to -2, plus 1)
  EXPECT_EQ(dx[3], 2 * 0.5);          // f(2)
  EXPECT_EQ(dx[4], 0);                // b < -limit
  EXPECT_EQ(dx[5], 0) << "infinite";  // b > limit: 0 whatever dy is
}

TEST(ActivationBackward, nan_rules) {
  EXPECT_EQ(value_of(backward(kind("relu"), {1}, {kNan}))[0], 0);
  EXPECT_EQ(value_of(backward(kind("srelu"), {1}, {kNan}))[0], 0);
  EXPECT_TRUE(std::isnan(value_of(backward(kind("relu"), {kInfinity}, {-1}))[0]));
  EXPECT_TRUE(std::isnan(value_of(backward(kind("silu"), {1}, {kNan}))[0]));
  // (1 - t^2) x^2 is 0 times infinity in FP32.
  EXPECT_TRUE(std::isnan(value_of(backward(kind("gelu"), {1}, {1e30}))[0]));
  EXPECT_EQ(value_of(backward(kind("gelu"), {1}, {1e18}))[0], 1);
}

TEST(ActivationBackward, overflow_on_the_way_is_infinite) {
  // (2 x dy) b = (6e38) 0.1 in FP32.
  EXPECT_EQ(value_of(backward(kind("sreglu"), {1e38}, {3, 0.1}))[0], kInfinity);
  EXPECT_EQ(value_of(backward(kind("sreglu"), {1e37}, {3, 0.1}))[0], 2 * 3 * 1e37 * 0.1);
}

double slope_of(Activation f, double x) {
  const double h = std::ldexp(1.0, -13);
  const auto difference = [&](double step) {
    return (exact_value(f, x + step, kClamp) - exact_value(f, x - step, kClamp)) / (2 * step);
  };
  return (4 * difference(h) - difference(2 * h)) / 3;  // Richardson: the error is O(h^4)
}

// TransformerEngine's derivative of gelu has constants rounded apart from the function's: 1e-8.
TEST(ActivationDerivative, agrees_with_finite_differences) {
  std::mt19937_64 engine(3);
  std::uniform_real_distribution<double> uniform(-9, 9);
  for (const Activation f : kFunctions) {
    for (int i = 0; i < 400; ++i) {
      const double x = uniform(engine);
      if (std::fabs(x) < 1e-3 || std::fabs(x - kClamp.limit) < 1e-3) {
        continue;  // the corners of relu, srelu and clamped
      }
      EXPECT_NEAR(exact_derivative(f, x, kClamp), slope_of(f, x), 3e-8) << static_cast<int>(f) << " at " << x;
    }
  }
}

TEST(ActivationBackward, is_the_gradient_of_the_forward) {
  for (const char* name : {"geglu", "swiglu", "reglu", "qgeglu", "sreglu", "clamped_swiglu"}) {
    ActivationParams p = kind(name);
    p.limit = std::string(name) == "clamped_swiglu" ? 1.5 : p.limit;
    const std::vector<double> x = {0.3, -0.8, 2.1, 1.4, -1.2, 0.9, -3.0, 0.2};
    const std::vector<double> dy = {1.5, -0.7, 0.4, 2.0};
    const auto loss = [&](std::vector<double> at, std::size_t i, double step) {
      at[i] += step;
      const std::vector<double> y = value_of(forward(p, at));
      double sum = 0;
      for (std::size_t j = 0; j < y.size(); ++j) {
        sum += dy[j] * y[j];
      }
      return sum;
    };
    const std::vector<double> dx = value_of(backward(p, dy, x));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double h = 1e-5;
      EXPECT_NEAR(dx[i], (loss(x, i, h) - loss(x, i, -h)) / (2 * h), 1e-7) << name << " " << i;
    }
  }
}

TEST(ActivationValuesOnly, gives_the_same_values) {
  const std::vector<double> x = {0.5, -3, 1e30, kInfinity, -kInfinity, kNan, -100, 2};
  for (const std::string_view name : op::activation_names()) {
    const ActivationParams p = kind(std::string(name));
    const std::vector<double> full = value_of(forward(p, x));
    const std::vector<double> quick = value_of(forward(p, x, true));
    for (std::size_t i = 0; i < full.size(); ++i) {
      EXPECT_TRUE(full[i] == quick[i] || (std::isnan(full[i]) && std::isnan(quick[i]))) << name << " " << i;
    }
  }
}

TEST(ActivationExactLeg, only_rational_kinds_have_one) {
  const op::Mode& mode = *op::find_mode("bf16");
  for (const std::string_view name : op::activation_names()) {
    const op::ExactPlan plan = op::activation_fwd().exact_plan(op::to_params(kind(std::string(name))), mode);
    EXPECT_EQ(plan.reason.empty(), op::activation_kind(name).rational) << name;
  }
}

TEST(ActivationCheck, constants_of_clamped_belong_to_it) {
  ActivationParams p = kind("swiglu");
  p.limit = 5;
  EXPECT_EQ(op::activation_fwd().check(op::to_params(p), *op::find_mode("fp32")).size(), 1U);
  p.kind = "clamped_swiglu";
  EXPECT_TRUE(op::activation_bwd().check(op::to_params(p), *op::find_mode("fp32")).empty());
}

}  // namespace
}  // namespace numcheck::reference
