// The references of dropout by hand, and what its findings say about a device's mask.
#include "op/dropout.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::evaluate;
using testing::noise;
using testing::output_named;
using testing::Problem;
using testing::value_of;
using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargest = std::numeric_limits<float>::max();

Problem forward(double p, std::size_t elements, std::string_view mode = "fp32") {
  return {&op::dropout_fwd(), dropout_fwd_reference(),
          op::to_params(op::DropoutParams{.elements = static_cast<std::int64_t>(elements), .p = p}), mode};
}
Problem backward(double p, std::size_t elements) {
  return {&op::dropout_bwd(), dropout_bwd_reference(),
          op::to_params(op::DropoutParams{.elements = static_cast<std::int64_t>(elements), .p = p})};
}

TEST(Dropout, the_share_is_in_steps) {
  for (const auto& [p, steps] : {std::pair{0.0, 0}, {0.003, 0}, {0.1, 25}, {0.25, 64}, {0.5, 128}, {0.996, 254}}) {
    EXPECT_EQ(op::DropoutParams{.p = p}.dropped_share(), steps / 256.0) << p;
  }
}

TEST(DropoutBwd, by_hand) {
  Numbers dy(16);
  for (std::size_t i = 0; i < 16; ++i) {
    dy[i] = static_cast<double>(i + 1);
  }
  // Bits 0, 1 and 7 of the first byte, bit 4 of the second one; kept elements are multiplied by 4.
  const op::Values values = evaluate(backward(0.75, 16), {{"dy", dy}, {"mask", {0x83, 0x10}}});
  EXPECT_EQ(value_of(values, "dx"), (Numbers{4, 8, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 52, 0, 0, 0}));
  const op::OutputValues& dx = output_named(values, "dx");
  EXPECT_GT(dx.magnitude[0], 0);
  EXPECT_LT(dx.magnitude[0], 1e-6);
  EXPECT_EQ(dx.magnitude[2], 0) << "a zero is exact";
  EXPECT_TRUE(value_of(backward(0.75, 0), {{"dy", {}}, {"mask", {}}}, "dx").empty());
}

TEST(DropoutBwd, what_is_dropped_is_not_read) {
  Numbers dy(16, kInfinity);
  dy[1] = std::nan("");
  dy[2] = std::nan("");
  const Numbers dx = value_of(backward(0.5, 16), {{"dy", dy}, {"mask", {0b101, 0}}}, "dx");
  EXPECT_EQ(dx[0], kInfinity);
  EXPECT_EQ(dx[1], 0);
  EXPECT_TRUE(std::isnan(dx[2]));
  EXPECT_EQ(dx[3], 0);
}

// y = S x with S diagonal: the gradient is the same S, so dx of dy is y of x = dy wherever the mask is the same.
TEST(DropoutBwd, is_the_derivative_of_the_forward_pass) {
  const Numbers x = noise(64, 1);
  const Numbers all_kept(8, 255);
  EXPECT_EQ(value_of(backward(0.3, 64), {{"dy", x}, {"mask", all_kept}}, "dx"),
            value_of(forward(0.3, 64), {{"x", x}}, "y"));
}

TEST(DropoutBwd, bounds_cover_fp32) {
  const Numbers dy = noise(4096, 2);
  for (const double p : {0.1, 0.3, 0.9, 0.99}) {
    const op::Values values = evaluate(backward(p, 4096), {{"dy", dy}, {"mask", Numbers(512, 255)}});
    const op::OutputValues& dx = output_named(values, "dx");
    const float scale = 1.0F / (1.0F - static_cast<float>(p));
    for (std::size_t i = 0; i < dy.size(); ++i) {
      const double error = std::fabs(static_cast<double>(static_cast<float>(dy[i]) * scale) - dx.value[i]);
      const auto bound = static_cast<double>(dx.magnitude[i]);
      ASSERT_TRUE(bound > 0 && error <= bound) << p << " " << i;
      ASSERT_LT(bound, 1e-4 * std::fabs(dx.value[i])) << p;
    }
  }
}

/// Share of the bits of a mask that are kept.
double kept_share(double p, const Numbers& draws) {
  const std::size_t bits = 8 * draws.size();
  const Numbers mask = testing::derived(backward(p, bits), {}, "mask", draws);
  double ones = 0;
  for (const double byte : mask) {
    EXPECT_TRUE(byte >= 0 && byte <= 255 && byte == std::floor(byte)) << byte;
    ones += __builtin_popcount(static_cast<unsigned>(byte));
  }
  return ones / static_cast<double>(bits);
}

TEST(DropoutBwd, derived_masks_follow_p_whatever_is_drawn) {
  for (const double p : {0.1, 0.25, 0.5, 0.9}) {
    const double share = 1 - std::floor(256 * p) / 256;
    EXPECT_NEAR(kept_share(p, noise(10000, 3)), share, 0.01) << p;
    EXPECT_NEAR(kept_share(p, Numbers(10000, 1)), share, 0.01) << p << " of a constant";
    EXPECT_NEAR(kept_share(p, Numbers(10000, kInfinity)), share, 0.01) << p << " of infinities";
  }
  EXPECT_EQ(kept_share(0, noise(100, 3)), 1);
}

TEST(DropoutFwd, nothing_is_known_before) {
  const op::Values values = evaluate(forward(0.5, 16), {{"x", Numbers(16, 3.0)}});
  EXPECT_EQ(value_of(values, "y"), Numbers(16, 6.0)) << "where it is kept";
  EXPECT_TRUE(output_named(values, "y").unpredictable);
  EXPECT_TRUE(output_named(values, "mask").unpredictable);
  EXPECT_EQ(value_of(values, "mask").size(), 2U);
  // An element that would not be finite if kept may be dropped: neither infinity nor NaN may be required.
  Numbers special(16, 65000.0);
  special[1] = kInfinity;
  special[2] = std::nan("");
  special[3] = kLargest;
  special[4] = 3;
  EXPECT_EQ(value_of(forward(0.5, 16, "fp16"), {{"x", special}}, "y"),
            (Numbers{0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(value_of(forward(0.5, 16), {{"x", special}}, "y")[3], 0);
  EXPECT_EQ(value_of(forward(0.5, 16), {{"x", special}}, "y")[0], 130000);
}

/// A device's outputs on x.
struct Device {
  Numbers y, mask;
};

/// One random byte per element; those below the threshold are dropped.
Device dropped(const Numbers& x, double p, unsigned threshold, core::Dtype format = core::Dtype::fp32) {
  std::mt19937 engine(5);
  Device out{Numbers(x.size()), Numbers(x.size() / 8)};
  const float scale = 1.0F / (1.0F - static_cast<float>(p));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool kept = engine() % 256 >= threshold;
    out.y[i] = kept ? core::round_to(static_cast<double>(static_cast<float>(x[i]) * scale), format) : 0;
    out.mask[i / 8] += kept ? 1U << (i % 8) : 0;
  }
  return out;
}

std::vector<op::Finding> findings_of(double p, const Numbers& x, const Device& device, std::string_view mode = "fp32") {
  const Problem problem = forward(p, x.size(), mode);
  const testing::Inputs inputs = {{"x", x}};
  const op::Values expected = evaluate(problem, inputs);
  const std::vector<op::Operand> operands = testing::operands_of(problem, inputs);
  const core::Dtype format = op::find_mode(mode)->output;
  const std::vector<op::Delivered> outputs = {{"y", device.y, format}, {"mask", device.mask, core::Dtype::uint8}};
  return problem.reference.findings({&problem.params, operands, &expected, outputs});
}

bool holds(const op::Finding& finding) {
  return finding.measured <= finding.limit;
}

TEST(DropoutFwd, a_correct_device_passes) {
  const Numbers x = noise(1 << 16, 4);
  for (const double p : {0.0, 0.1, 0.25, 0.9}) {
    for (const auto& [mode, format] :
         {std::pair{"fp32", core::Dtype::fp32}, {"bf16", core::Dtype::bf16}, {"fp16", core::Dtype::fp16}}) {
      const std::vector<op::Finding> found =
          findings_of(p, x, dropped(x, p, static_cast<unsigned>(256 * p), format), mode);
      ASSERT_EQ(found.size(), p == 0 ? 3U : 5U) << "draws of probability 0 do not repeat";
      EXPECT_EQ(found[0].name, "elements off the mask");
      EXPECT_EQ(found[0].limit, 0);
      for (const op::Finding& each : found) {
        EXPECT_TRUE(holds(each)) << each.name << " " << p << " " << mode << ": " << each.measured;
      }
    }
  }
  EXPECT_TRUE(findings_of(0.5, {}, {}).empty());
}

// NaN, infinities, and what the scale moves beyond FP32 or FP16.
TEST(DropoutFwd, special_values_are_not_mistakes) {
  Numbers x = noise(1 << 12, 4);
  for (std::size_t i = 0; i < x.size(); i += 4) {
    const Numbers special = {std::nan(""), kInfinity, -kInfinity, kLargest, -kLargest, 0x1p-149, 60000, -65000};
    x[i] = special[i / 4 % special.size()];
  }
  EXPECT_EQ(findings_of(0.25, x, dropped(x, 0.25, 64))[0].measured, 0);
  for (double& each : x) {
    each = core::round_to(each, core::Dtype::fp16);
  }
  Device device = dropped(x, 0.25, 64, core::Dtype::fp16);
  EXPECT_EQ(findings_of(0.25, x, device, "fp16")[0].measured, 0);
  double planted = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isfinite(x[i]) && device.y[i] != 0 && planted < 3) {
      device.y[i] = planted == 0 ? std::nan("") : planted == 1 ? kInfinity : -device.y[i];
      ++planted;
    }
  }
  EXPECT_EQ(findings_of(0.25, x, device, "fp16")[0].measured, 3);
}

/// The probability that a right mask of 16 elements fails gate `index`.
double false_alarms(double p, std::size_t index) {
  const double share = op::DropoutParams{.p = p}.dropped_share();
  const Numbers x(16, 1.0);
  double failing = 0;
  for (unsigned drops = 0; drops < 1U << 16; ++drops) {
    Device device{Numbers(16), {static_cast<double>(~drops & 0xFF), static_cast<double>(~drops >> 8 & 0xFF)}};
    const auto dropped = static_cast<double>(std::popcount(drops));
    if (!holds(findings_of(p, x, device)[index])) {
      failing += std::pow(share, dropped) * std::pow(1 - share, 16 - dropped);
    }
  }
  return failing;
}

// All masks of 16 elements, with their probabilities: shares of so few are not normal.
TEST(DropoutFwd, few_elements_raise_no_false_alarms) {
  for (const double p : {0.1, 0.5}) {
    EXPECT_LT(false_alarms(p, 1), 1e-7) << "dropped share, " << p;
    EXPECT_LT(false_alarms(p, 2), 1e-7) << "dropped neighbours, " << p;
  }
}

TEST(DropoutFwd, nothing_may_be_dropped_if_nothing_is_to_be) {
  const Numbers x(16, 1.0);
  EXPECT_FALSE(holds(findings_of(0, x, {Numbers(16, 1.0), {0xFE, 0xFF}})[1]));
}

TEST(DropoutFwd, mistakes_are_counted) {
  const Numbers x = noise(1 << 16, 4, 1, 3);
  Device device = dropped(x, 0.25, 64);
  device.y[100] *= 1 + 0x1p-20;
  device.y[200] = device.y[200] == 0 ? 1 : 0;
  EXPECT_EQ(findings_of(0.25, x, device)[0].measured, device.y[100] == 0 ? 1 : 2);
  EXPECT_FALSE(holds(findings_of(0.25, x, dropped(x, 0.25, 68))[1])) << "4/256 more are dropped";
  EXPECT_FALSE(holds(findings_of(0.25, x, dropped(x, 0.25, 0))[1]));
  // Every second group of 4 is dropped: the share is right, the neighbours are not.
  device = dropped(x, 0.5, 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    device.y[i] *= i % 8 < 4 ? 1 : 0;
    device.mask[i / 8] = 0x0F;
  }
  const std::vector<op::Finding> found = findings_of(0.5, x, device);
  EXPECT_TRUE(holds(found[0]) && holds(found[1]));
  EXPECT_FALSE(holds(found[2]));
  EXPECT_EQ(found[1].text, "0.50000 of the elements are dropped; as implemented it is floor(256 p) / 256 = 0.50000");
}

// The mask of 512 elements is that of others: no share and no correlation shows it.
TEST(DropoutFwd, ranges_with_the_mask_of_others_are_named) {
  const Numbers x = noise(1 << 16, 4);
  Device device = dropped(x, 0.25, 64);
  const std::size_t bytes = 512 / 8, from = 3 * bytes, to = 100 * bytes;
  std::copy_n(device.mask.begin() + from, bytes, device.mask.begin() + to);
  for (std::size_t i = 8 * to; i < 8 * (to + bytes); ++i) {
    const bool kept = (static_cast<unsigned>(device.mask[i / 8]) >> (i % 8) & 1U) != 0;
    device.y[i] = kept ? static_cast<double>(static_cast<float>(x[i]) * (1.0F / 0.75F)) : 0;
  }
  const std::vector<op::Finding> found = findings_of(0.25, x, device);
  for (const op::Finding& each : found) {
    EXPECT_EQ(holds(each), each.name != "copied draws") << each.name;
  }
  EXPECT_TRUE(found.back().text.starts_with("elements 51200 to 51711 have the mask of 1536 to 2047,"))
      << found.back().text;
}

}  // namespace
}  // namespace numcheck::reference
