// The epilogue: scale, addend, bias, activation, one rounding, and the faulty ways to store.
#include "model/epilogue.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"

namespace {

using namespace numcheck;
using core::Dtype;
using model::MatrixView;

/// D for one row of accumulators, which are given as products with 1.
std::vector<float> epilogue_of(const model::Epilogue& epilogue, const std::vector<float>& acc, Dtype output,
                               float* amax = nullptr) {
  model::Epilogue e = epilogue;
  e.output = output;
  std::vector<std::byte> d(acc.size() * static_cast<std::size_t>(core::dtype_info(output).storage_bytes));
  const float largest = model::apply_epilogue(e, acc, 1, static_cast<std::int64_t>(acc.size()), {d.data(), 0});
  if (amax != nullptr) {
    *amax = largest;
  }
  std::vector<double> values(acc.size());
  core::decode(d, output, values);
  return {values.begin(), values.end()};
}

TEST(Epilogue, scale_addend_and_bias_round_once_each) {
  const float acc = 1 + 0x1p-23F;
  model::Epilogue e;
  e.scale = 1 + 0x1p-23F;
  e.beta = -1;
  const std::vector<float> c = {1};
  e.c = MatrixView{reinterpret_cast<const std::byte*>(c.data()), Dtype::fp32, 1, 1, 1, 1};
  // The product is rounded to 1 + 2^-22 before C is added.
  EXPECT_EQ(epilogue_of(e, {acc}, Dtype::fp32)[0], 0x1p-22F);
  // beta C is exact inside the addition: (1 + 2^-23)^2 - (1 + 2^-22) keeps its 2^-46.
  const std::vector<float> odd = {1 + 0x1p-23F};
  e.c = MatrixView{reinterpret_cast<const std::byte*>(odd.data()), Dtype::fp32, 1, 1, 1, 1};
  e.beta = 1 + 0x1p-23F;
  e.scale = 1;
  EXPECT_EQ(epilogue_of(e, {-(1 + 0x1p-22F)}, Dtype::fp32)[0], 0x1p-46F);
  e.beta = -1;
  e.scale = 1 + 0x1p-23F;
  e.c = MatrixView{reinterpret_cast<const std::byte*>(c.data()), Dtype::fp32, 1, 1, 1, 1};
  const std::vector<float> bias = {0.5F};
  e.bias = MatrixView{reinterpret_cast<const std::byte*>(bias.data()), Dtype::fp32, 1, 1, 1, 1};
  EXPECT_EQ(epilogue_of(e, {acc}, Dtype::fp32)[0], 0.5F + 0x1p-22F);
}

TEST(Epilogue, activations) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  model::Epilogue e;
  e.activation = model::Activation::relu;
  const auto relu = epilogue_of(e, {-1, -0.0F, 2, nan}, Dtype::fp32);
  EXPECT_EQ(relu[0], 0);
  EXPECT_EQ(relu[2], 2);
  EXPECT_TRUE(std::isnan(relu[3]));
  e.activation = model::Activation::gelu_tanh;
  const auto tanh_form = epilogue_of(e, {-3, -1, 0, 0.5F, 3, 50}, Dtype::fp32);
  e.activation = model::Activation::gelu_erf;
  const auto erf_form = epilogue_of(e, {-3, -1, 0, 0.5F, 3, 50}, Dtype::fp32);
  const std::vector<double> x = {-3, -1, 0, 0.5, 3, 50};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double z = std::sqrt(2 / std::acos(-1.0)) * (x[i] + 0.044715 * x[i] * x[i] * x[i]);
    EXPECT_NEAR(tanh_form[i], x[i] / (1 + std::exp(-2 * z)), 1e-6 * std::max(1.0, std::fabs(x[i])));
    EXPECT_NEAR(erf_form[i], x[i] / 2 * std::erfc(-x[i] / std::sqrt(2.0)), 1e-6 * std::max(1.0, std::fabs(x[i])));
  }
  EXPECT_NE(tanh_form[1], erf_form[1]);
}

TEST(Epilogue, fp8_output_is_scaled_saturated_and_measured) {
  model::Epilogue e;
  e.d_scale = 2.0F;
  e.overflow = core::Overflow::saturate;
  float amax = 0;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto d = epilogue_of(e, {1, -300, nan, 0x1p-11F, 0.53125F}, Dtype::fp8_e4m3, &amax);
  EXPECT_EQ(d[0], 2);
  EXPECT_EQ(d[1], -448);
  EXPECT_TRUE(std::isnan(d[2]));
  EXPECT_EQ(d[3], 0);     // half of the smallest subnormal: a tie to even
  EXPECT_EQ(d[4], 1.0F);  // 1.0625 is a tie between 1 and 1.125
  EXPECT_EQ(amax, 300);   // before d_scale, NaN left out
  e.overflow = core::Overflow::ieee;
  EXPECT_TRUE(std::isnan(epilogue_of(e, {-300}, Dtype::fp8_e4m3)[0]));
}

TEST(Epilogue, faulty_stores) {
  model::Epilogue e;
  e.rounding = core::Rounding::toward_zero;
  EXPECT_EQ(epilogue_of(e, {1 + 255 * 0x1p-15F}, Dtype::bf16)[0], 1.0F);
  e = {};
  e.detour = Dtype::fp16;
  // 1 + 2^-8 + 2^-12 rounds up to 1 + 2^-7; rounded to FP16 first, it becomes a tie.
  EXPECT_EQ(epilogue_of(e, {1 + 0x1p-8F + 0x1p-12F}, Dtype::bf16)[0], 1.0F);
  EXPECT_EQ(epilogue_of({}, {1 + 0x1p-8F + 0x1p-12F}, Dtype::bf16)[0], 1 + 0x1p-7F);
  e = {};
  e.product_format = Dtype::bf16;
  e.scale = 2;
  // Twice 1/2 + 2^-9 is a tie of BF16 and becomes 1, whatever is added after.
  EXPECT_EQ(epilogue_of(e, {0.5F + 0x1p-9F}, Dtype::fp32)[0], 1.0F);
  e = {};
  e.sum_format = Dtype::bf16;
  e.activation = model::Activation::relu;
  EXPECT_EQ(epilogue_of(e, {1 + 0x1p-8F}, Dtype::fp32)[0], 1.0F);
  e = {};
  e.activation = model::Activation::gelu_tanh;
  const float exact = epilogue_of(e, {1}, Dtype::fp32)[0];
  e.tanh_error = 1e-3F;
  EXPECT_NEAR(epilogue_of(e, {1}, Dtype::fp32)[0] - exact, 0.5e-3 * std::sin(64.0), 1e-6);
  e = {};
  e.flushes_subnormals = true;
  EXPECT_EQ(epilogue_of(e, {0x1p-130F, 0x1p-126F}, Dtype::fp32), (std::vector<float>{0, 0x1p-126F}));
  e = {};
  e.drops_nan = true;
  EXPECT_EQ(epilogue_of(e, {std::nanf("")}, Dtype::fp16)[0], 0);
}

}  // namespace
