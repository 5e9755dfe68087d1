// A and S2 of products after gelu: bounds follow its slope, variances stay.
#include "tolerance/gelu_errors.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace numcheck::tolerance {
namespace {

constexpr double kArithmetic = 5 * 0x1p-24;

model::ErrorModel model_of_sum(double bound) {
  model::ErrorModel model;
  model.gelu = model::GeluErrors{.bound = kArithmetic};
  model.bound_magnitude = bound + kArithmetic;
  model.var_second = 1e-13;
  model.var_magnitude = kArithmetic * kArithmetic / 3;
  return model;
}

double gelu(double z) {
  return z / (1 + std::exp(-2 * 0.79788456080286535588 * (z + 0.044715 * z * z * z)));
}

struct Element {
  double bound = 0, variance = 0;
};

Element narrowed(const model::ErrorModel& model, float z, float a, float s) {
  std::array<float, 1> argument{z}, magnitude{a}, deviation{s};
  narrow_to_gelu(model, argument, magnitude, deviation);
  const auto m = static_cast<double>(magnitude[0]), d = static_cast<double>(deviation[0]);
  return {model.bound_magnitude * m, model.var_second * d * d + model.var_magnitude * m * m};
}

TEST(GeluErrors, no_error_of_the_sum_exceeds_the_bound) {
  for (const double unit : {1e-7, 1e-5, 1e-3, 1e-1}) {
    const model::ErrorModel model = model_of_sum(unit);
    for (double z = -12; z < 8; z += 0.03125) {
      for (const double a : {std::fabs(z), std::fabs(z) + 1, 40.0}) {
        // The yardstick has the largest slope as a factor.
        const Element found = narrowed(model, static_cast<float>(z), static_cast<float>(1.13 * a), 6);
        for (const double share : {-1.0, -0.5, 0.5, 1.0}) {
          const double error = std::fabs(gelu(z + share * unit * a) - gelu(z));
          EXPECT_LE(error, found.bound) << "z " << z << ", A " << a << ", unit " << unit << ", share " << share;
        }
        EXPECT_GE(found.bound, 0x1p-24 * std::fabs(z));
      }
    }
  }
}

TEST(GeluErrors, where_gelu_is_flat_its_own_are_left) {
  const model::ErrorModel model = model_of_sum(1e-7);
  EXPECT_NEAR(narrowed(model, -7, 90, 30).bound, 0x1p-24 * 7, 1e-8);
  EXPECT_NEAR(narrowed(model, -30, 90, 30).bound, 0x1p-24 * 30, 1e-8);
  EXPECT_LT(narrowed(model, -0.752F, 2, 2).bound, 6e-7) << "the minimum";
  EXPECT_NEAR(narrowed(model_of_sum(1e-5), 30, 900, 30).bound, 9e-3 / 1.13 + 4 * 0x1p-24 * 30, 2e-6) << "a slope of 1";
}

/// The tanh itself in FP32, with an ulp of error either way, over all z that matter.
TEST(GeluErrors, hold_for_gelu_in_fp32) {
  const model::ErrorModel model = model_of_sum(1e-12);
  for (float z = -12; z < 12; z += 0x1p-9F) {
    for (const float ulps : {-1.0F, 0.0F, 1.0F}) {
      const float w = 0.7978845834732056F * (z + 0.04471499845385551F * (z * z * z));
      const auto t = static_cast<float>(std::tanh(static_cast<double>(w))) + ulps * 0x1p-24F;
      const float y = 0.5F * z * (1 + std::fmin(std::fmax(t, -1.0F), 1.0F));
      const double error = std::fabs(static_cast<double>(y) - gelu(static_cast<double>(z)));
      EXPECT_LE(error, narrowed(model, z, 1.13F * std::fabs(z), 1).bound) << z << ' ' << ulps;
    }
  }
}

TEST(GeluErrors, variances_stay) {
  const model::ErrorModel model = model_of_sum(1e-5);
  for (const float z : {-30.0F, -7.0F, -1.0F, -0.75F, 0.0F, 2.0F}) {
    const double before = model.var_second * 900 + model.var_magnitude * 900 * 900;
    EXPECT_NEAR(narrowed(model, z, 900, 30).variance, before, 1e-5 * before) << z;
  }
}

TEST(GeluErrors, what_may_overflow_keeps_its_magnitude) {
  model::ErrorModel model = model_of_sum(1e-5);
  model.overflow_magnitude = 900;
  EXPECT_EQ(narrowed(model, -7, 900, 30).bound, model.bound_magnitude * 900);
  EXPECT_LT(narrowed(model, -7, 899, 30).bound, 1e-4);
  const float infinity = std::numeric_limits<float>::infinity();
  model.overflow_magnitude = infinity;
  EXPECT_EQ(narrowed(model, -infinity, 900, 30).bound, model.bound_magnitude * 900);
  EXPECT_EQ(narrowed(model, std::numeric_limits<float>::quiet_NaN(), 900, 30).bound, model.bound_magnitude * 900);
}

TEST(GeluErrors, only_of_models_with_gelu) {
  model::ErrorModel model = model_of_sum(1e-5);
  model.gelu.reset();
  EXPECT_EQ(narrowed(model, -7, 900, 30).bound, model.bound_magnitude * 900);
}

}  // namespace
}  // namespace numcheck::tolerance
