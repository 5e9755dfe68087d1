// What relu leaves of the errors of a sum.
#include "tolerance/relu_errors.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace numcheck::tolerance {
namespace {

model::ErrorModel model_with(double magnitude, double absolute) {
  model::ErrorModel model;
  model.bound_magnitude = magnitude;
  model.bound_absolute = absolute;
  model.relu = true;
  return model;
}

struct Element {
  float z, magnitude, deviation;
};

Element narrowed(const model::ErrorModel& model, Element element) {
  narrow_to_relu(model, {&element.z, 1}, {&element.magnitude, 1}, {&element.deviation, 1});
  return element;
}

double bound_of(const model::ErrorModel& model, const Element& element) {
  return model.bound_magnitude * static_cast<double>(element.magnitude) + model.bound_absolute;
}

TEST(ReluErrors, sums_far_below_zero_leave_nothing_else) {
  const model::ErrorModel model = model_with(0.01, 0.5);
  const Element element = narrowed(model, {-2, 100, 3});  // B = 1.5
  EXPECT_GE(bound_of(model, element), 0);
  EXPECT_LT(bound_of(model, element), 1e-5);
  EXPECT_EQ(element.deviation, 0);
}

TEST(ReluErrors, what_is_left_of_sums_near_the_largest_number_is_finite) {
  const Element element = narrowed(model_with(0.01, 2e37), {-3e38F, 1e38F, 3});
  EXPECT_TRUE(std::isfinite(element.magnitude));
  EXPECT_GE(bound_of(model_with(0.01, 2e37), element), 0);
}

TEST(ReluErrors, sums_that_may_be_positive_keep_their_bound) {
  const model::ErrorModel model = model_with(0.01, 0.5);
  for (const float z : {-1.4F, 0.0F, 2.0F}) {
    const Element element = narrowed(model, {z, 100, 3});
    EXPECT_EQ(element.magnitude, 100) << z;
    EXPECT_EQ(element.deviation, 3) << z;
  }
}

TEST(ReluErrors, sums_that_may_overflow_keep_their_bound) {
  model::ErrorModel model = model_with(0.01, 0);
  model.overflow_magnitude = 50;
  EXPECT_EQ(narrowed(model, {-2, 100, 3}).magnitude, 100);
  model.overflow_magnitude = std::numeric_limits<double>::infinity();
  EXPECT_EQ(narrowed(model, {-std::numeric_limits<float>::infinity(), 100, 3}).magnitude, 100);
  EXPECT_EQ(narrowed(model, {-2, 100, 3}).magnitude, 0);
}

}  // namespace
}  // namespace numcheck::tolerance
