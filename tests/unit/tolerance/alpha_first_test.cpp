// What FP32 operands lose that are scaled by alpha before they are multiplied.
#include "tolerance/alpha_first.hpp"

#include <array>
#include <string_view>

#include <gtest/gtest.h>

#include "op/gemm.hpp"
#include "tolerance/gemm_model.hpp"

namespace numcheck::tolerance {
namespace {

constexpr double kLargest = 100;

struct Setting {
  double alpha = 1;
  double least = 0x1p-149;  ///< of a
  std::string_view mode = "fp32";
  model::MatrixArithmetic arithmetic = model::MatrixArithmetic::by_mode_alpha_first;
};

model::ErrorModel model_of(const Setting& s) {
  op::GemmParams p;
  p.m = p.n = 1;
  p.k = 2;
  p.alpha = s.alpha;
  const op::Params params = op::to_params(p);
  const std::array a = {s.least, 1.0}, b = {1.0, kLargest};
  const op::Operand first{.port = "a", .data = a.data(), .rows = 1, .cols = 2};
  const op::Operand second{.port = "b", .data = b.data(), .rows = 2, .cols = 1};
  model::ModelRequest request;
  request.params = &params;
  request.mode = op::find_mode(s.mode);
  request.expected = s.mode == "fp32" ? model::PrecisionClass::fp32 : model::PrecisionClass::tf32_rne;
  request.arithmetic = s.arithmetic;
  request.first = &first;
  request.second = &second;
  request.first_max = 1;
  request.second_max = kLargest;
  return gemm_error_model(request, "d");
}

/// What the bound has besides the one of alpha = 1, times |alpha|.
double lost(const Setting& s) {
  Setting plain = s;
  plain.arithmetic = model::MatrixArithmetic::by_mode;
  return model_of(s).bound_absolute - model_of(plain).bound_absolute;
}

TEST(AlphaFirst, what_alpha_makes_subnormal_loses_a_bit) {
  EXPECT_DOUBLE_EQ(lost({.alpha = -0.5}), 2 * 0x1p-150 * kLargest);
  EXPECT_DOUBLE_EQ(lost({.alpha = 3}), 2 * 0x1p-150 * kLargest);
  EXPECT_GT(model_of({.alpha = -0.5}).var_absolute,
            model_of({.alpha = -0.5, .arithmetic = model::MatrixArithmetic::by_mode}).var_absolute);
  EXPECT_GE(lost({.alpha = -0.5, .mode = "tf32"}), 2 * 0x1p-137 * kLargest);
}

TEST(AlphaFirst, what_stays_normal_or_exact_loses_nothing) {
  EXPECT_EQ(lost({.alpha = 1}), 0);
  EXPECT_EQ(lost({.alpha = -4}), 0) << "subnormals are multiples of 2^-149, and stay so";
  EXPECT_EQ(lost({.alpha = 0}), 0);
  EXPECT_EQ(lost({.alpha = 0.3, .least = 0x1p-120}), 0);
}

TEST(AlphaFirst, what_becomes_0_times_infinity_may_be_nan) {
  const model::ErrorModel half = model_of({.alpha = -0.5});
  EXPECT_TRUE(half.overflow_possible);
  EXPECT_EQ(half.operand_least, 0x1p-148);
  EXPECT_FALSE(model_of({.alpha = 2}).overflow_possible);
  EXPECT_FALSE(model_of({.alpha = -0.5, .arithmetic = model::MatrixArithmetic::by_mode}).overflow_possible);
}

}  // namespace
}  // namespace numcheck::tolerance
