// Gates of codes that are rounded at random: devices that draw as they should pass, and others do not.
#include "reference/nvfp4_stochastic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "op/quantize.hpp"
#include "op_problem.hpp"
#include "reference/nvfp4.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::noise;
using testing::operands_of;
using testing::Problem;
using Numbers = std::vector<double>;

constexpr std::size_t kRows = 64, kCols = 256;
constexpr std::array kMagnitudes = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};

op::QuantizeParams params() {
  op::QuantizeParams p;
  p.rows = kRows;
  p.cols = kCols;
  p.recipe = "nvfp4";
  p.format = "fp4_e2m1";
  p.stochastic = true;
  return p;
}

/// The code for |v| between two magnitudes, the lower of which is that of `code`; `fraction`: of the way to the next.
using Draw = std::function<unsigned(unsigned code, double fraction)>;

/// What the gates say of row-wise codes of x that are drawn in the way that the element's row has.
std::vector<op::Finding> judged_by_row(const Numbers& x, const std::function<const Draw*(std::size_t row)>& draw_of) {
  const op::QuantizeParams p = params();
  const Problem problem = {&op::quantize(), quantize_reference(), op::to_params(p), "fp32"};
  Numbers amax = {0};
  for (const double value : x) {
    amax[0] = std::fmax(amax[0], std::fabs(value));
  }
  const testing::Inputs inputs = {{"x", x}, {"global_amax", amax}};
  const std::vector<op::Operand> operands = operands_of(problem, inputs);
  const Nvfp4Scaled scaled = nvfp4_scaled({x.data(), kRows, kCols, false}, Nvfp4Rule(amax[0]));
  Numbers bytes(x.size() / 2);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = scaled.values[i], magnitude = std::fabs(v);
    unsigned code = 7;
    while (kMagnitudes.at(code) > magnitude) {
      --code;
    }
    if (code < 7 && magnitude > kMagnitudes.at(code)) {
      code = (*draw_of(i / kCols))(
          code, (magnitude - kMagnitudes.at(code)) / (kMagnitudes.at(code + 1) - kMagnitudes.at(code)));
    }
    code |= std::signbit(v) ? 8U : 0U;
    bytes[i / 2] += i % 2 == 0 ? code : 16 * code;
  }
  const std::array outputs = {op::Delivered{"q", bytes, core::Dtype::uint8, 1, {}}};
  return stochastic_findings({&problem.params, operands, nullptr, outputs, nullptr});
}

std::vector<op::Finding> judged(const Numbers& x, const Draw& draw) {
  return judged_by_row(x, [&draw](std::size_t) { return &draw; });
}

const op::Finding& named(const std::vector<op::Finding>& findings, std::string_view name) {
  return *std::ranges::find(findings, name, &op::Finding::name);
}

Numbers fp32_noise(unsigned seed) {
  Numbers x = noise(kRows * kCols, seed);
  for (double& value : x) {
    value = static_cast<double>(static_cast<float>(value));
  }
  return x;
}

/// Eight random bits of element after element.
class Bits {
 public:
  explicit Bits(unsigned seed) : engine_(seed) {}
  int operator()() { return static_cast<int>(engine_() & 255U); }

 private:
  std::mt19937 engine_;
};

int threshold(double fraction) {
  return static_cast<int>(std::floor(256 * fraction));
}

TEST(StochasticNvfp4, devices_that_draw_eight_bits_pass) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    Bits bits(1000 + seed);  // not those of which the noise is made
    for (const op::Finding& finding : judged(fp32_noise(seed), [&](unsigned code, double fraction) {
           return code + (bits() + threshold(fraction) >= 256 ? 1 : 0);
         })) {
      EXPECT_LE(finding.measured, 0.8 * finding.limit) << finding.name << ": " << finding.text;
      EXPECT_EQ(finding.fake, "");
    }
  }
}

TEST(StochasticNvfp4, bias_is_found) {
  Bits bits(1);
  const auto share = [&](const Draw& draw) { return named(judged(fp32_noise(5), draw), "share rounded up").measured; };
  EXPECT_GT(
      share([&](unsigned code, double fraction) { return code + (bits() + threshold(fraction) >= 256 - 12 ? 1 : 0); }),
      1)
      << "5 % of a step too often";
  EXPECT_GT(share([](unsigned code, double fraction) { return code + (fraction > 0.5 ? 1 : 0); }), 1);
  EXPECT_GT(share([](unsigned code, double) { return code; }), 1);
  EXPECT_GT(share([&](unsigned code, double) { return code + (bits() < 128 ? 1 : 0); }), 1)
      << "right on average, and not for any part of a step";
}

TEST(StochasticNvfp4, one_row_that_is_not_drawn_is_found) {
  const auto share_with = [](const Draw& of_row) {
    Bits bits(3);
    const Draw of_others = [&bits](unsigned code, double fraction) {
      return code + (bits() + threshold(fraction) >= 256 ? 1 : 0);
    };
    return named(judged_by_row(fp32_noise(8), [&](std::size_t row) { return row == 40 ? &of_row : &of_others; }),
                 "share rounded up");
  };
  const op::Finding nearest =
      share_with([](unsigned code, double fraction) { return code + (fraction > 0.5 ? 1 : 0); });
  EXPECT_GT(nearest.measured, 1);
  EXPECT_TRUE(nearest.text.starts_with("elements of line 40 are rounded to the nearer number")) << nearest.text;
  EXPECT_GT(share_with([](unsigned code, double) { return code; }).measured, 1) << "truncated";
}

TEST(StochasticNvfp4, shared_bits_are_found) {
  Bits bits(2);
  int count = 0, drawn = 0;
  const std::vector<op::Finding> findings = judged(fp32_noise(6), [&](unsigned code, double fraction) {
    drawn = count++ % 2 == 0 ? bits() : drawn;
    return code + (drawn + threshold(fraction) >= 256 ? 1 : 0);
  });
  EXPECT_LE(named(findings, "share rounded up").measured, 1);
  EXPECT_GT(named(findings, "correlated draws").measured, 1);
}

TEST(StochasticNvfp4, codes_beyond_the_neighbours_are_counted) {
  int count = 0;
  const std::vector<op::Finding> findings =
      judged(fp32_noise(7), [&](unsigned code, double) { return ++count <= 3 && code > 0 ? code - 1 : ++code; });
  EXPECT_GE(named(findings, "impossible codes").measured, 1);
  EXPECT_LE(named(findings, "impossible codes").measured, 3);
}

TEST(StochasticNvfp4, nothing_to_round_proves_nothing) {
  Numbers x(kRows * kCols, 2688);
  const std::vector<op::Finding> findings = judged(x, [](unsigned code, double) { return code; });
  EXPECT_EQ(named(findings, "share rounded up").fake, "rounded_to_nearest");
  EXPECT_EQ(named(findings, "impossible codes").measured, 0);
}

}  // namespace
}  // namespace numcheck::reference
