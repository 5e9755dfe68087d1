// The references of casts and transposes: every code of every 16-bit input by search in a list of the format's numbers.
#include "op/quantize.hpp"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using core::Dtype;
using testing::derived;
using testing::evaluate;
using testing::Inputs;
using testing::noise;
using testing::output_named;
using testing::Problem;
using testing::value_of;
using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

Problem quantize(std::int64_t rows, std::int64_t cols, const std::string& format, double scale = 0,
                 std::string_view mode = "fp32") {
  return {
      &op::quantize(), quantize_reference(),
      op::to_params(op::QuantizeParams{.rows = rows, .cols = cols, .format = format, .layout = "both", .scale = scale}),
      mode};
}

/// The numbers of an FP8 format from 0 up: element c is that of code c.
/// E4M3: (8 + m) 2^(e - 10) up to 448, the code 7F is NaN; E5M2: (4 + m) 2^(e - 17) up to 57344. Source: OCP OFP8 1.0.
Numbers numbers_of(const std::string& format) {
  const bool e4m3 = format == "fp8_e4m3";
  const int steps = e4m3 ? 8 : 4, bias = e4m3 ? 10 : 17, codes = e4m3 ? 127 : 124;
  Numbers numbers;
  for (int code = 0; code < codes; ++code) {
    const int exponent = code / steps, fraction = code % steps;
    numbers.push_back(exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(steps + fraction, exponent - bias));
  }
  return numbers;
}

/// The nearest number, of two equally near ones that of the even code; the largest one for what is larger.
double nearest(const Numbers& numbers, double x) {
  if (std::isnan(x)) {
    return x;
  }
  const double magnitude = std::fabs(x);
  const auto above = std::ranges::lower_bound(numbers, magnitude);
  double found = numbers.back();
  if (above != numbers.end()) {
    const auto code = above - numbers.begin();
    const double below = code == 0 ? 0 : numbers[static_cast<std::size_t>(code - 1)];
    const bool up =
        *above - magnitude < magnitude - below || (*above - magnitude == magnitude - below && code % 2 == 0);
    found = up || code == 0 ? *above : below;
  }
  return std::copysign(found, x);
}

/// All numbers of a 16-bit format, by their bits.
Numbers all_inputs(const std::string& mode) {
  Numbers all;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    if (mode == "bf16") {
      all.push_back(static_cast<double>(std::bit_cast<float>(bits << 16)));
      continue;
    }
    const auto exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
    const double magnitude = exponent == 31  ? (fraction == 0 ? kInfinity : kNan)
                             : exponent == 0 ? std::ldexp(fraction, -24)
                                             : std::ldexp(1024 + fraction, exponent - 25);
    all.push_back((bits >> 15) != 0 ? -magnitude : magnitude);
  }
  return all;
}

bool same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

TEST(Quantize, the_lists_are_the_formats) {
  EXPECT_EQ(numbers_of("fp8_e4m3").back(), 448);
  EXPECT_EQ(numbers_of("fp8_e4m3").at(1), 0x1p-9);
  EXPECT_EQ(numbers_of("fp8_e4m3").at(56), 1);
  EXPECT_EQ(numbers_of("fp8_e5m2").back(), 57344);
  EXPECT_EQ(numbers_of("fp8_e5m2").at(1), 0x1p-16);
  EXPECT_EQ(numbers_of("fp8_e5m2").at(60), 1);
  EXPECT_EQ(nearest({0, 1, 2, 3}, 0.5), 0);
  EXPECT_EQ(nearest({0, 1, 2, 3}, -1.5), -2);
  EXPECT_EQ(nearest({0, 1, 2, 3}, 99), 3);
}

// What is stored is the reference's value, rounded once and saturated.
TEST(Quantize, every_code_of_every_16_bit_input) {
  for (const char* mode : {"bf16", "fp16"}) {
    const Numbers x = all_inputs(mode);
    for (const std::string format : {"fp8_e4m3", "fp8_e5m2"}) {
      const Numbers numbers = numbers_of(format);
      const Dtype dtype = *core::parse_dtype(format);
      for (const float scale : {1.0F, 0.37F, 144.51613F, 0x1p-6F, 9e9F}) {
        const Problem p = quantize(256, 256, format, static_cast<double>(scale), mode);
        const Numbers q = value_of(p, {{"x", x}, {"scale", {static_cast<double>(scale)}}}, "q");
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
          const double scaled = static_cast<double>(static_cast<float>(x[i]) * scale);
          wrong += same(core::round_to(q[i], dtype, core::Overflow::saturate), nearest(numbers, scaled)) ? 0 : 1;
          ASSERT_LE(wrong, 0U) << mode << " " << format << " " << scale << " " << x[i];
        }
      }
    }
  }
}

TEST(Quantize, outputs) {
  const Inputs at = {{"x", {1, -2, 0.3125, 1000, kNan, -0.0}}, {"scale", {3}}};
  const op::Values values = evaluate(quantize(2, 3, "fp8_e4m3", 3), at);
  const Numbers q = value_of(values, "q"), q_t = value_of(values, "q_t");
  EXPECT_EQ(Numbers(q.begin(), q.begin() + 4), (Numbers{3, -6, 0.9375, 448}));
  EXPECT_TRUE(std::isnan(q[4]));
  EXPECT_TRUE(std::signbit(q[5]));
  for (std::size_t r = 0; r < 2; ++r) {
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_TRUE(same(q_t[c * 2 + r], q[r * 3 + c])) << r << " " << c;
    }
  }
  EXPECT_EQ(value_of(values, "amax"), Numbers{1000}) << "a NaN is dropped";
  EXPECT_EQ(value_of(values, "scale_inv"), Numbers{static_cast<double>(1.0F / 3.0F)});
  for (const op::OutputValues& output : values.outputs) {
    EXPECT_TRUE(output.bit_exact) << output.port;
    EXPECT_TRUE(output.magnitude.empty()) << output.port;
  }
}

TEST(Quantize, infinities_are_the_largest_number) {
  const Inputs at = {{"x", {kInfinity, -kInfinity, 1e38}}, {"scale", {100}}};
  const op::Values values = evaluate(quantize(1, 3, "fp8_e5m2", 100), at);
  EXPECT_EQ(value_of(values, "q"), (Numbers{57344, -57344, 57344}));
  EXPECT_EQ(value_of(values, "amax"), Numbers{kInfinity});
}

TEST(Quantize, nothing_to_quantise) {
  for (const auto& [rows, cols] : {std::pair{0, 4}, {4, 0}, {0, 0}}) {
    const op::Values values = evaluate(quantize(rows, cols, "fp8_e4m3"), {{"x", {}}, {"scale", {1}}});
    EXPECT_TRUE(value_of(values, "q").empty() && value_of(values, "q_t").empty());
    EXPECT_EQ(value_of(values, "amax"), Numbers{0});
    EXPECT_EQ(value_of(values, "scale_inv"), Numbers{1});
  }
}

TEST(Quantize, scale_inverse_is_one_fp32_division) {
  for (const float scale : {3.0F, 0.1F, 448.0F / 3.7F, 0x1p-100F, FLT_MAX}) {
    const Numbers inverse =
        value_of(quantize(1, 1, "fp8_e4m3"), {{"x", {1}}, {"scale", {static_cast<double>(scale)}}}, "scale_inv");
    // Nearest to 1 / scale: no neighbour is nearer. (In double 1 / scale is within 2^-53.)
    const auto got = static_cast<float>(inverse[0]);
    const double exact = 1 / static_cast<double>(scale);
    for (const float neighbour : {std::nextafter(got, 0.0F), std::nextafter(got, FLT_MAX)}) {
      EXPECT_LE(std::fabs(inverse[0] - exact), std::fabs(static_cast<double>(neighbour) - exact)) << scale;
    }
    EXPECT_EQ(inverse[0], static_cast<double>(got));
  }
}

TEST(Quantize, scale_from_amax) {
  const auto scale = [](const Numbers& x, const std::string& format, double given = 0) {
    return derived(quantize(1, static_cast<std::int64_t>(x.size()), format, given), {{"x", x}}, "scale", {0.7})[0];
  };
  EXPECT_EQ(scale({1, -3.5, 2}, "fp8_e4m3"), 128);
  EXPECT_EQ(scale({0.3F}, "fp8_e5m2"), static_cast<double>(57344.0F / 0.3F));
  EXPECT_EQ(scale({1, kNan, 7}, "fp8_e4m3"), 64) << "a NaN is dropped";
  EXPECT_EQ(scale({0, 0}, "fp8_e4m3"), 1);
  EXPECT_EQ(scale({}, "fp8_e4m3"), 1);
  EXPECT_EQ(scale({-kInfinity, 1}, "fp8_e4m3"), 1);
  EXPECT_EQ(scale({0x1p-149}, "fp8_e4m3"), static_cast<double>(FLT_MAX));
  EXPECT_EQ(scale({1, -3.5, 2}, "fp8_e4m3", 0.75), 0.75) << "the plan's own";
}

TEST(Dequantize, every_code) {
  for (const std::string format : {"fp8_e4m3", "fp8_e5m2"}) {
    Numbers codes = numbers_of(format);
    const std::size_t positive = codes.size();
    for (std::size_t i = 0; i < positive; ++i) {
      codes.push_back(-codes[i]);
    }
    codes.insert(codes.end(), {kNan, kInfinity, -kInfinity});
    for (const float scale : {1.0F, 0.37F, 0x1p-140F, 3e38F}) {
      const op::DequantizeParams p{.rows = 1, .cols = static_cast<std::int64_t>(codes.size()), .format = format};
      const Problem problem{&op::dequantize(), dequantize_reference(), op::to_params(p), "bf16"};
      const op::Values values = evaluate(problem, {{"q", codes}, {"q_scale_inv", {static_cast<double>(scale)}}});
      EXPECT_TRUE(output_named(values, "y").bit_exact);
      const Numbers y = value_of(values, "y");
      for (std::size_t i = 0; i < codes.size(); ++i) {
        // The product of 4 and 24 bits is exact in double: one rounding.
        const auto expected = static_cast<float>(codes[i] * static_cast<double>(scale));
        EXPECT_TRUE(same(y[i], static_cast<double>(expected))) << format << " " << codes[i] << " " << scale;
      }
    }
  }
}

Numbers transposed(std::int64_t rows, std::int64_t cols, const Numbers& x) {
  const op::TransposeParams p{.rows = rows, .cols = cols};
  const Problem problem{&op::transpose(), transpose_reference(), op::to_params(p)};
  const op::Values values = evaluate(problem, {{"x", x}});
  EXPECT_TRUE(output_named(values, "y").bit_exact);
  return value_of(values, "y");
}

TEST(Transpose, by_hand_and_twice) {
  EXPECT_EQ(transposed(2, 3, {1, 2, 3, 4, 5, 6}), (Numbers{1, 4, 2, 5, 3, 6}));
  EXPECT_TRUE(transposed(0, 3, {}).empty());
  EXPECT_EQ(transposed(1, 3, {1, 2, 3}), (Numbers{1, 2, 3}));
  const Numbers special = transposed(2, 2, {kNan, -0.0, kInfinity, 1});
  EXPECT_TRUE(std::isnan(special[0]) && special[1] == kInfinity && same(special[2], -0.0) && special[3] == 1);
  const Numbers x = noise(37 * 53, 1);
  const Numbers y = transposed(37, 53, x);
  EXPECT_NE(y, x);
  EXPECT_EQ(transposed(53, 37, y), x);
}

}  // namespace
}  // namespace numcheck::reference
