// The references of casts with a scale per block: every scale by its definition, every code by its block's scale.
#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "op/quantize.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"
#include "reference/scale_rule.hpp"

namespace numcheck::reference {
namespace {

using core::Dtype;
using testing::derived;
using testing::evaluate;
using testing::noise;
using testing::output_named;
using testing::Problem;
using testing::value_of;
using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

Problem problem_of(const op::QuantizeParams& p, std::string_view mode = "fp32") {
  return {&op::quantize(), quantize_reference(), op::to_params(p), mode};
}

op::QuantizeParams params(std::int64_t rows, std::int64_t cols, const std::string& recipe) {
  op::QuantizeParams p;
  p.rows = rows;
  p.cols = cols;
  p.layout = "both";
  p.recipe = recipe;
  return p;
}

/// The only scale of a row of numbers.
double scale_inv(const Numbers& x, op::QuantizeParams p, std::string_view mode = "fp32") {
  p.rows = 1;
  p.cols = static_cast<std::int64_t>(x.size());
  return value_of(problem_of(p, mode), {{"x", x}}, "scale_inv").at(0);
}

op::QuantizeParams with(const std::string& recipe, const std::string& format, double epsilon,
                        const std::string& power_of_two = "default") {
  op::QuantizeParams p = params(1, 1, recipe);
  p.format = format;
  p.epsilon = epsilon;
  p.power_of_two = power_of_two;
  return p;
}

TEST(BlockScales, of_fp32_recipes) {
  const op::QuantizeParams e4m3 = with("block_1x128", "fp8_e4m3", 0), any = with("block_1x128", "fp8_e4m3", 0, "off");
  EXPECT_EQ(scale_inv({1, -3.5, 2}, e4m3), 0x1p-7) << "448 / 3.5 is a power of two";
  EXPECT_EQ(scale_inv({3.6, 2}, e4m3), 0x1p-6) << "rounded down";
  EXPECT_EQ(scale_inv({3.6F, 2}, any), static_cast<double>(1.0F / (448.0F / 3.6F)));
  EXPECT_EQ(scale_inv({1, kNan, 7}, e4m3), 0x1p-6) << "a NaN is dropped";
  EXPECT_EQ(scale_inv({kNan}, e4m3), 1);
  EXPECT_EQ(scale_inv({0, -0.0}, e4m3), 1);
  EXPECT_EQ(scale_inv({1, -kInfinity}, e4m3), 1);
  EXPECT_EQ(scale_inv({1, 2}, with("block_1x128", "fp8_e5m2", 0)), 0x1p-14);
}

TEST(BlockScales, an_overflow_is_the_largest_number_of_the_inputs) {
  const op::QuantizeParams rounded = with("block_128x128", "fp8_e4m3", 0),
                           any = with("block_128x128", "fp8_e4m3", 0, "off");
  EXPECT_EQ(scale_inv({0x1p-149}, rounded), 0x1p-127);
  EXPECT_EQ(scale_inv({0x1p-149}, any), static_cast<double>(1.0F / FLT_MAX));
  EXPECT_EQ(scale_inv({0x1p-133}, any, "bf16"), static_cast<double>(1.0F / 0x1.FEp127F));
  const op::QuantizeParams tensor = with("tensor", "fp8_e4m3", 0, "on");
  EXPECT_EQ(derived(problem_of(tensor), {{"x", {0x1p-149}}}, "scale", {0})[0], 0x1p127);
}

TEST(BlockScales, epsilon_is_the_least_amax) {
  for (const char* recipe : {"block_1x128", "block_128x128"}) {
    EXPECT_EQ(scale_inv({0.001}, with(recipe, "fp8_e4m3", 3.5)), 0x1p-7);
    EXPECT_EQ(scale_inv({0}, with(recipe, "fp8_e4m3", 3.5)), 0x1p-7);
    EXPECT_EQ(scale_inv({kNan}, with(recipe, "fp8_e4m3", 3.5)), 0x1p-7);
    EXPECT_EQ(scale_inv({7}, with(recipe, "fp8_e4m3", 3.5)), 0x1p-6);
  }
  const Problem tensor = problem_of(with("tensor", "fp8_e4m3", 3.6, "on"));
  EXPECT_EQ(derived(tensor, {{"x", {1}}}, "scale", {0})[0], 64) << "rounded down";
  EXPECT_EQ(derived(problem_of(with("tensor", "fp8_e4m3", 3.5)), {{"x", {1}}}, "scale", {0})[0], 128);
}

/// The smallest e with 2^(e - 127) >= amax / largest, exactly: amax <= largest 2^(e - 127).
int rounded_up(double amax, double largest) {
  int e = 0;
  while (e < 254 && std::ldexp(largest, e - 127) < amax) {
    ++e;
  }
  return e;
}

TEST(BlockScales, exponents_at_and_beside_every_boundary) {
  for (const Dtype codes : {Dtype::fp8_e4m3, Dtype::fp8_e5m2}) {
    const double largest = core::dtype_info(codes).max_finite;
    for (int power = -126; power <= 127; ++power) {
      for (const double mantissa : {1.0, largest / std::exp2(std::floor(std::log2(largest))), 1.5}) {
        const auto middle = static_cast<float>(std::ldexp(mantissa, power));
        for (const float amax : {std::nextafter(middle, 0.0F), middle, std::nextafter(middle, FLT_MAX)}) {
          const auto exact = static_cast<double>(amax);
          if (exact >= std::ldexp(largest, -126)) {  // else the quotient is subnormal, and rounded as one
            EXPECT_EQ(block_exponent(exact, codes, true), rounded_up(exact, largest)) << amax;
          }
          const int floor = 127 + std::ilogb(exact) - std::ilogb(largest);
          EXPECT_EQ(block_exponent(exact, codes, false), std::clamp(floor, 0, 254)) << amax;
        }
      }
    }
    for (const bool up : {true, false}) {
      EXPECT_EQ(block_exponent(0, codes, up), 0);
      EXPECT_EQ(block_exponent(kInfinity, codes, up), 254);
      EXPECT_EQ(block_exponent(0x1p-149, codes, up), 0);
    }
    const auto boundary = static_cast<float>(std::ldexp(largest, -127));
    EXPECT_EQ(block_exponent(static_cast<double>(std::nextafter(boundary, 1.0F)), codes, true), 0)
        << "it is above 2^-127 by less than half of what FP32 can tell there";
    EXPECT_EQ(block_exponent(static_cast<double>(boundary) * (1 + 0x1p-20), codes, true), 1);
  }
}

/// Where the scale of element (r, c) of x is, and its code.
struct Layout {
  std::string codes, scales;
  std::int64_t block_rows, block_cols;
  bool codes_transposed, scales_transposed;
};

std::size_t scale_index(const Layout& layout, const op::QuantizeParams& p, std::int64_t r, std::int64_t c) {
  const std::int64_t down = (p.rows + layout.block_rows - 1) / layout.block_rows;
  const std::int64_t across = (p.cols + layout.block_cols - 1) / layout.block_cols;
  const std::int64_t line = r / layout.block_rows, column = c / layout.block_cols;
  return static_cast<std::size_t>(layout.scales_transposed ? column * down + line : line * across + column);
}

/// Of every block, in the order of their scales.
Numbers block_amaxes(const Layout& layout, const op::QuantizeParams& p, const Numbers& x) {
  Numbers most(scale_index(layout, p, p.rows - 1, p.cols - 1) + 1);
  for (std::int64_t r = 0; r < p.rows; ++r) {
    for (std::int64_t c = 0; c < p.cols; ++c) {
      double& amax = most.at(scale_index(layout, p, r, c));
      amax = std::fmax(amax, std::fabs(x[static_cast<std::size_t>(r * p.cols + c)]));
    }
  }
  return most;
}

/// Power of two, or E8M0, that follows from the amax; format E4M3.
float stored_scale(const op::QuantizeParams& p, double amax) {
  if (p.recipe == "mxfp8") {
    return std::ldexp(1.0F, rounded_up(amax, 448) - 127);
  }
  return 1.0F / static_cast<float>(std::exp2(std::floor(std::log2(448 / amax))));
}

void expect_layout(const Layout& layout, const op::QuantizeParams& p) {
  const Numbers x = noise(static_cast<std::size_t>(p.rows * p.cols), 7, 3);
  const op::Values values = evaluate(problem_of(p), {{"x", x}});
  const Numbers codes = value_of(values, layout.codes), scales = value_of(values, layout.scales);
  const Numbers amaxes = block_amaxes(layout, p, x);
  ASSERT_EQ(scales.size(), amaxes.size());
  EXPECT_TRUE(output_named(values, layout.codes).bit_exact && output_named(values, layout.scales).bit_exact);
  ASSERT_EQ(codes.size(), x.size());
  for (std::int64_t r = 0; r < p.rows; ++r) {
    for (std::int64_t c = 0; c < p.cols; ++c) {
      const std::size_t block = scale_index(layout, p, r, c);
      const float stored = stored_scale(p, amaxes[block]);
      ASSERT_EQ(scales[block], static_cast<double>(stored)) << layout.scales << r << " " << c;
      const auto at = static_cast<std::size_t>(layout.codes_transposed ? c * p.rows + r : r * p.cols + c);
      const double element = x[static_cast<std::size_t>(r * p.cols + c)];
      ASSERT_EQ(codes[at], element / static_cast<double>(stored)) << layout.codes << r << " " << c;
    }
  }
}

TEST(BlockQuantize, every_code_has_the_scale_of_its_block) {
  for (const auto& [rows, cols] : {std::pair{131, 300}, {1, 1}, {40, 129}, {257, 64}}) {
    op::QuantizeParams p = params(rows, cols, "block_1x128");
    expect_layout({"q", "scale_inv", 1, 128, false, true}, p);
    expect_layout({"q_t", "scale_inv_t", 128, 1, true, false}, p);
    p.scale_layout = "compact";
    expect_layout({"q", "scale_inv", 1, 128, false, false}, p);
    expect_layout({"q_columnwise", "scale_inv_columnwise", 128, 1, false, false}, p);
    p = params(rows, cols, "block_128x128");
    expect_layout({"q", "scale_inv", 128, 128, false, false}, p);
    expect_layout({"q_t", "scale_inv_t", 128, 128, true, true}, p);
    p = params(rows, cols, "mxfp8");
    expect_layout({"q", "scale_inv", 1, 32, false, false}, p);
    expect_layout({"q_columnwise", "scale_inv_columnwise", 32, 1, false, false}, p);
  }
}

TEST(BlockQuantize, ports_are_padded_as_products_read_them) {
  const auto port = [](const std::string& recipe, std::string_view name,
                       const std::string& scale_layout = "gemm_ready") {
    op::QuantizeParams p = params(131, 300, recipe);
    p.scale_layout = scale_layout;
    return op::port_named(problem_of(p).ports(), name);
  };
  const auto expect = [](const op::Port& made, std::int64_t rows, std::int64_t cols, std::int64_t ld) {
    EXPECT_EQ(made.rows, rows) << made.name;
    EXPECT_EQ(made.cols, cols) << made.name;
    EXPECT_EQ(made.ld, ld) << made.name;
  };
  expect(port("block_1x128", "scale_inv"), 3, 131, 132);
  expect(port("block_1x128", "scale_inv_t"), 2, 300, 300);
  expect(port("block_1x128", "scale_inv", "compact"), 131, 3, 3);
  expect(port("block_1x128", "scale_inv_columnwise", "compact"), 2, 300, 300);
  expect(port("block_128x128", "scale_inv"), 2, 3, 4);
  expect(port("block_128x128", "scale_inv_t"), 3, 2, 4);
  expect(port("mxfp8", "scale_inv"), 131, 10, 12);
  expect(port("mxfp8", "scale_inv_columnwise"), 5, 300, 384);
}

TEST(BlockQuantize, special_values) {
  const Numbers x = {kNan, kInfinity, -kInfinity, -0.0, 1e38, 1};
  for (const char* recipe : {"block_1x128", "block_128x128", "mxfp8"}) {
    const Numbers q = value_of(problem_of(params(1, 6, recipe)), {{"x", x}}, "q");
    EXPECT_TRUE(std::isnan(q[0])) << recipe;
    EXPECT_EQ(q[1], 448) << recipe;
    EXPECT_EQ(q[2], -448) << recipe;
    EXPECT_TRUE(q[3] == 0 && std::signbit(q[3])) << recipe;
    EXPECT_EQ(q[4], recipe == std::string("mxfp8") ? static_cast<double>(1e38F * 0x1p-127F) : 448) << recipe;
  }
}

TEST(BlockQuantize, floor_saturates_and_up_does_not) {
  op::QuantizeParams p = params(1, 2, "mxfp8");
  const Numbers x = {500, 1};
  EXPECT_EQ(value_of(problem_of(p), {{"x", x}}, "q"), (Numbers{250, 0.5}));
  p.rounding = "floor";
  EXPECT_EQ(value_of(problem_of(p), {{"x", x}}, "q"), (Numbers{448, 1}));
}

TEST(BlockQuantize, columns_are_quantised_from_x) {
  const op::QuantizeParams p = params(2, 2, "mxfp8");
  const op::Values values = evaluate(problem_of(p), {{"x", {448, 448 * 0x1p-9, 0x1p-20, 0x1p-30}}});
  EXPECT_EQ(value_of(values, "q"), (Numbers{448, 448 * 0x1p-9, 256, 0.25}));
  EXPECT_EQ(value_of(values, "q_columnwise"), (Numbers{448, 448, 0x1p-20, 0x1p-21}));
}

TEST(BlockDequantize, products_with_the_scale_of_the_block) {
  const op::DequantizeParams p{.rows = 2, .cols = 130, .recipe = "block_1x128"};
  const Problem problem{&op::dequantize(), dequantize_reference(), op::to_params(p), "bf16"};
  const Numbers codes(260, 3), scales = {static_cast<double>(0.1F), 2, 3, 0x1p-140};  // [blocks, rows]
  const Numbers y = value_of(problem, {{"q", codes}, {"q_scale_inv", scales}}, "y");
  EXPECT_EQ(y[0], static_cast<double>(3 * 0.1F));
  EXPECT_EQ(y[128], 9);
  EXPECT_EQ(y[130], 6);
  EXPECT_EQ(y[258], 3 * 0x1p-140);
}

TEST(BlockDequantize, inputs_use_the_range_of_the_codes) {
  const op::DequantizeParams p{.rows = 3, .cols = 64, .recipe = "mxfp8"};
  const Problem problem{&op::dequantize(), dequantize_reference(), op::to_params(p), "bf16"};
  const Numbers codes = derived(problem, {}, "q", noise(192, 3, 1e-20));
  for (std::size_t block = 0; block < 6; ++block) {
    double most = 0;
    for (std::size_t i = 0; i < 32; ++i) {
      most = std::max(most, std::fabs(codes[block * 32 + i]));
    }
    EXPECT_GT(most, 224);
    EXPECT_LE(most, 448);
  }
  EXPECT_EQ(derived(problem, {}, "q_scale_inv", {-448, 1, 0, kNan, kInfinity, 449}),
            (Numbers{1, 0x1p-8, 0x1p-127, 0x1p-127, 0x1p127, 2}));
}

TEST(BlockQuantize, what_does_not_apply_is_refused) {
  const auto mistakes = [](op::QuantizeParams p) {
    return op::quantize().check(op::to_params(p), *op::find_mode("bf16")).size();
  };
  op::QuantizeParams p = params(4, 4, "mxfp8");
  EXPECT_EQ(mistakes(p), 0U);
  p.scale = p.epsilon = 1;
  p.power_of_two = "on";
  p.scale_layout = "compact";
  EXPECT_EQ(mistakes(p), 4U);
  p = params(4, 4, "tensor");
  p.rounding = "floor";
  EXPECT_EQ(mistakes(p), 1U);
  p.rounding = "up";
  p.epsilon = 1;
  EXPECT_EQ(mistakes(p), 0U) << "current scaling";
  p.scale = 1;
  EXPECT_EQ(mistakes(p), 1U);
}

}  // namespace
}  // namespace numcheck::reference
