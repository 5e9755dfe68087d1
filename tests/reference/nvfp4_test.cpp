// The references of casts to NVFP4 and back, against the definition element by element.
#include "op/nvfp4.hpp"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "op/quantize.hpp"
#include "op_problem.hpp"
#include "reference/nvfp4_values.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::derived;
using testing::evaluate;
using testing::noise;
using testing::Problem;
using testing::value_of;
using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");
constexpr std::int64_t kBlock = 16;
/// As ml_dtypes.float4_e2m1fn has them; those of codes from 8 on are negative.
constexpr std::array kMagnitudes = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
constexpr unsigned kSign = 8;

op::QuantizeParams params(std::int64_t rows, std::int64_t cols, const std::string& shape = "1x16") {
  op::QuantizeParams p;
  p.rows = rows;
  p.cols = cols;
  p.layout = "both";
  p.recipe = "nvfp4";
  p.format = "fp4_e2m1";
  p.block_shape = shape;
  return p;
}

Problem problem_of(const op::QuantizeParams& p) {
  return {&op::quantize(), quantize_reference(), op::to_params(p), "fp32"};
}

/// The outputs for x and its amax.
op::Values quantized(const op::QuantizeParams& p, const Numbers& x) {
  const Problem problem = problem_of(p);
  const Numbers amax = derived(problem, {{"x", x}}, "global_amax", {0});
  return evaluate(problem, {{"x", x}, {"global_amax", amax}});
}

/// The nearest of the eight magnitudes; of two, the one whose code is even.
unsigned nearest_code(float x) {
  if (std::isnan(x)) {
    return 7;
  }
  const double magnitude = std::fmin(kMagnitudes.back(), std::fabs(static_cast<double>(x)));
  unsigned best = 0;
  for (unsigned code = 1; code < kMagnitudes.size(); ++code) {
    const double now = std::fabs(kMagnitudes.at(code) - magnitude),
                 before = std::fabs(kMagnitudes.at(best) - magnitude);
    if (now < before || (now == before && code % 2 == 0)) {
      best = code;
    }
  }
  return best | (std::signbit(x) ? kSign : 0);
}

unsigned code_at(const Numbers& bytes, std::int64_t i) {
  const auto byte = static_cast<unsigned>(bytes.at(static_cast<std::size_t>(i / 2)));
  return i % 2 == 0 ? byte & 15 : byte >> 4;
}

struct Scale {
  float stored, factor;
};

Scale scale_of(float amax, float global_amax) {
  float s = 2688.0F / global_amax;
  s = std::isinf(s) ? FLT_MAX : s;
  s = global_amax == 0 || std::isinf(global_amax) ? 1 : s;
  const float needed = amax * (s * (1.0F / 6));
  const auto stored =
      static_cast<float>(core::round_to(static_cast<double>(std::fmin(needed, 448)), core::Dtype::fp8_e4m3));
  const float factor = 1 / (stored * (1 / s));
  return {stored, std::isinf(factor) ? FLT_MAX : factor};
}

/// One layout against the definition. x(line, i): element of the matrix or of its transpose.
template <class X>
void expect_codes(const Numbers& bytes, const Numbers& scales, std::int64_t lines, std::int64_t length, bool square,
                  float global_amax, const X& x) {
  const std::int64_t across = (length + kBlock - 1) / kBlock;
  ASSERT_EQ(static_cast<std::int64_t>(bytes.size()), lines * length / 2);
  ASSERT_EQ(static_cast<std::int64_t>(scales.size()), lines * across);
  for (std::int64_t line = 0; line < lines; ++line) {
    for (std::int64_t block = 0; block < across; ++block) {
      const std::int64_t first = square ? line / kBlock * kBlock : line;
      const std::int64_t end = square ? std::min(lines, first + kBlock) : line + 1;
      const std::int64_t last = std::min(length, (block + 1) * kBlock);
      float amax = 0;
      for (std::int64_t k = first; k < end; ++k) {
        for (std::int64_t i = block * kBlock; i < last; ++i) {
          amax = std::fmax(amax, std::fabs(x(k, i)));
        }
      }
      const Scale scale = scale_of(amax, global_amax);
      ASSERT_EQ(scales.at(static_cast<std::size_t>(line * across + block)), static_cast<double>(scale.stored));
      for (std::int64_t i = block * kBlock; i < last; ++i) {
        ASSERT_EQ(code_at(bytes, line * length + i), nearest_code(x(line, i) * scale.factor)) << line << ", " << i;
      }
    }
  }
}

void expect_definition(const op::QuantizeParams& p, const Numbers& x) {
  const op::Values values = quantized(p, x);
  const auto amax = static_cast<float>(derived(problem_of(p), {{"x", x}}, "global_amax", {0}).at(0));
  const auto element = [&](std::int64_t row, std::int64_t col) {
    return static_cast<float>(x.at(static_cast<std::size_t>(row * p.cols + col)));
  };
  const bool square = p.block_shape == "16x16";
  expect_codes(value_of(values, "q"), value_of(values, "scale_inv"), p.rows, p.cols, square, amax, element);
  expect_codes(value_of(values, "q_t"), value_of(values, "scale_inv_t"), p.cols, p.rows, square, amax,
               [&](std::int64_t line, std::int64_t i) { return element(i, line); });
}

TEST(Nvfp4, numbers_of_all_bytes) {
  Numbers bytes;
  for (int byte = 0; byte < 256; ++byte) {
    bytes.push_back(byte);
  }
  const core::Buffer<double> numbers = nvfp4_numbers(bytes);
  for (unsigned i = 0; i < 512; ++i) {
    const unsigned code = i % 2 == 0 ? i / 2 & 15 : i / 2 >> 4;
    const double expected = kMagnitudes.at(code % kSign);
    EXPECT_EQ(numbers[i], code < kSign ? expected : -expected);
    EXPECT_EQ(std::signbit(numbers[i]), code >= kSign);
  }
}

TEST(Nvfp4, every_code_and_scale_is_that_of_the_definition) {
  for (const char* shape : {"1x16", "16x16"}) {
    for (const auto& [rows, cols] : {std::pair(34, 70), std::pair(2, 2), std::pair(16, 16), std::pair(100, 18)}) {
      Numbers x = noise(static_cast<std::size_t>(rows * cols), 7);
      for (std::size_t i = 0; i < x.size(); ++i) {  // as FP32 holds them, in many binades
        x[i] = static_cast<double>(static_cast<float>(std::ldexp(x[i], static_cast<int>(i / 16 % 40) - 20)));
      }
      expect_definition(params(rows, cols, shape), x);
    }
  }
}

TEST(Nvfp4, special_values) {
  for (const char* shape : {"1x16", "16x16"}) {
    for (const double odd : {kNan, -kNan, kInfinity, -kInfinity, 0.0, -0.0, 0x1p-149, 0x1.FFFFFEp127, 0x1p-126}) {
      Numbers x = noise(36 * 20, 3);
      for (double& value : x) {
        value = static_cast<double>(static_cast<float>(value));
      }
      x[45] = x[700] = odd;
      expect_definition(params(36, 20, shape), x);
      expect_definition(params(2, 4, shape), Numbers(8, odd));
    }
  }
}

TEST(Nvfp4, halves_and_ties) {
  // The amax is 6 * 448, so that S is 1, d is 448 and factor is 1 / 448.
  Numbers x = {2688, 0.25 * 448, -0.75 * 448, 1.25 * 448, -1.75 * 448, 2.5 * 448, 3.5 * 448, -5.0 * 448};
  const op::Values values = quantized(params(1, 8), x);
  EXPECT_EQ(value_of(values, "q"), (Numbers{0x07, 0x2A, 0x4C, 0xE6}));
  EXPECT_EQ(value_of(values, "scale_inv"), Numbers{448});
}

TEST(Nvfp4, a_block_far_below_the_others_is_dead) {
  Numbers x(32, 0);
  x[0] = 1;
  x[16] = 0x1p-24;
  x[17] = -0x1p-24;
  const op::Values values = quantized(params(2, 16), x);
  EXPECT_EQ(value_of(values, "scale_inv"), (Numbers{448, 0}));
  EXPECT_EQ(value_of(values, "q").at(8), 0xF7) << "they saturate";
}

TEST(Nvfp4, products_with_both_scales) {
  op::DequantizeParams p;
  p.rows = 2;
  p.cols = 18;
  p.recipe = "nvfp4";
  p.format = "fp4_e2m1";
  const Problem problem = {&op::dequantize(), dequantize_reference(), op::to_params(p), "fp32"};
  Numbers q(18, 0);
  q[0] = 0x72;   // 1, 6
  q[8] = 0x9F;   // -6, -0.5
  q[17] = 0x30;  // 0, 1.5
  const Numbers scales = {2, 448, 1, 0.875}, amax = {static_cast<double>(3.3F)};
  const Numbers y = value_of(evaluate(problem, {{"q", q}, {"q_scale_inv", scales}, {"q_global_amax", amax}}), "y");
  const auto value = [](float code, float scale) { return static_cast<double>(code * (scale * 3.3F * (1.0F / 2688))); };
  EXPECT_EQ(y[0], value(1, 2));
  EXPECT_EQ(y[1], value(6, 2));
  EXPECT_EQ(y[16], value(-6, 448));
  EXPECT_EQ(y[17], value(-0.5, 448));
  EXPECT_EQ(y[34], 0);
  EXPECT_EQ(y[35], value(1.5, 0.875F));
}

TEST(Nvfp4, inputs_of_dequantize_use_the_range) {
  op::DequantizeParams p;
  p.rows = 64;
  p.cols = 128;
  p.recipe = "nvfp4";
  p.format = "fp4_e2m1";
  const Problem problem = {&op::dequantize(), dequantize_reference(), op::to_params(p), "fp32"};
  Numbers bytes = derived(problem, {}, "q", noise(64 * 64, 5));
  std::ranges::sort(bytes);
  EXPECT_GT(std::ranges::distance(bytes.begin(), std::ranges::unique(bytes).begin()), 150);
  const Numbers scales = derived(problem, {}, "q_scale_inv", noise(64 * 8, 6));
  EXPECT_EQ(std::ranges::max(scales), 448);
  EXPECT_EQ(derived(problem, {}, "q_global_amax", {-2.5}), Numbers{2.5});
  EXPECT_EQ(derived(problem, {}, "q_global_amax", {kNan}), Numbers{1});
}

TEST(Nvfp4, what_does_not_apply_is_refused) {
  const auto mistakes = [](const op::QuantizeParams& p) {
    return op::quantize().check(op::to_params(p), *op::find_mode("fp32"));
  };
  EXPECT_TRUE(mistakes(params(2, 4)).empty());
  op::QuantizeParams odd = params(3, 5);
  EXPECT_EQ(mistakes(odd).size(), 2U);
  odd.layout = "rowwise";
  EXPECT_EQ(mistakes(odd).size(), 1U);
  op::QuantizeParams p = params(2, 4);
  p.format = "fp8_e4m3";
  EXPECT_EQ(mistakes(p).size(), 1U);
  p = params(2, 4);
  p.epsilon = 1;
  EXPECT_EQ(mistakes(p).size(), 1U);
  p = params(2, 4, "16x16");
  p.recipe = "mxfp8";
  EXPECT_EQ(mistakes(p).size(), 2U) << "its format and its blocks";
}

}  // namespace
}  // namespace numcheck::reference
