// What large addends leave of a product's error model.
#include "tolerance/addend_errors.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace numcheck::tolerance {
namespace {

/// An accumulator of 14 bits, and an epilogue of 24.
model::ErrorModel coarse() {
  model::ErrorModel model;
  model.bound_magnitude = 0x1p-13 + 0x1p-23;
  model.var_second = 0x1p-28;
  model.var_value = 0x1p-28;
  model.var_coherent = 0x1p-28;
  model.var_magnitude = 0x1p-48;
  model.addends = model::AddendErrors{.magnitude = 0x1p-13, .value = 0x1p-28, .coherent = 0x1p-28};
  return model;
}

struct Element {
  double product, c, terms, second;
};

struct Judged {
  double bound, variance;
};

Judged judged(const model::ErrorModel& model, const Element& e) {
  const double z = e.product + e.c;
  auto magnitude = static_cast<float>(e.terms + std::fabs(e.c));
  auto deviation = static_cast<float>(e.second);
  separate_addends(model, {.c = &e.c}, {.narrow = {}, .wide = {&z, 1}, .indices = {}}, {&magnitude, 1},
                   {&deviation, 1});
  const model::ErrorModel own = without_addends(model);
  const double s = static_cast<double>(deviation);
  return {own.bound_magnitude * static_cast<double>(magnitude),
          own.var_second * s * s + own.var_value * z * z +
              own.var_magnitude * static_cast<double>(magnitude) * static_cast<double>(magnitude)};
}

TEST(AddendErrors, are_the_product_s_and_those_of_one_rounding) {
  const Element e{.product = 16, .c = 1e6, .terms = 200, .second = 16};
  const Judged own = judged(coarse(), e);
  const double bound = 0x1p-13 * 200 + 0x1p-23 * (200 + 1e6);
  EXPECT_GE(own.bound, bound);
  EXPECT_LE(own.bound, bound * 1.01);
  const double variance =
      0x1p-28 * (16 * 16 + 16 * 16 + std::pow(16.0 * 16 / 200, 2)) + 0x1p-48 * std::pow(200 + 1e6, 2);
  EXPECT_GE(own.variance, variance * (1 - 1e-6));
  EXPECT_LE(own.variance, variance * 1.01);
}

TEST(AddendErrors, without_addends_are_what_they_were) {
  const Element e{.product = 16, .c = 0, .terms = 200, .second = 16};
  const Judged own = judged(coarse(), e);
  EXPECT_NEAR(own.bound / (coarse().bound_magnitude * 200), 1, 1e-5);
}

TEST(AddendErrors, stay_where_sums_may_overflow) {
  model::ErrorModel model = coarse();
  model.overflow_magnitude = 1e6;
  const Element e{.product = 16, .c = 1e6, .terms = 200, .second = 16};
  EXPECT_GT(judged(model, e).bound, 100);
  const Element infinite{.product = 16, .c = std::numeric_limits<double>::infinity(), .terms = 200, .second = 16};
  EXPECT_EQ(judged(coarse(), infinite).bound, std::numeric_limits<double>::infinity());
}

TEST(AddendErrors, of_every_output_are_its_own) {
  op::GemmParams params;
  params.m = 2;
  params.n = 3;
  params.beta = 2;
  params.bias = true;
  const std::vector<double> c = {1, 2, 3, 4, 5, -6}, bias = {10, 20, 30};
  const std::vector<op::Operand> operands = {{.port = "c", .data = c.data(), .rows = 2, .cols = 3},
                                             {.port = "bias", .data = bias.data(), .cols = 3, .scale = 0.5}};
  const Addends addends = addends_of(params, operands);
  EXPECT_EQ(addends.at(1).value, 2 * 2 + 10);
  EXPECT_EQ(addends.at(5).value, -12 + 15);
  EXPECT_EQ(addends.at(5).magnitude, 12 + 15);
}

}  // namespace
}  // namespace numcheck::tolerance
