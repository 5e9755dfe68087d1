// Directed probes of the fused step: subnormals, overflow, specials.
// Columns, vectors and expected words: "Accurate Models of NVIDIA Tensor Cores" (arXiv 2512.07004), MMA-Sim (arXiv
// 2511.10909), Fasi et al. (PeerJ CS 7:e330), FTTN (arXiv 2403.00232).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/conformance/probe_path.hpp"

namespace numcheck::probe {
namespace {

using core::Dtype;
using model::Instruction;
using model::InstructionClass;

/// E1 to E5, E15: the range of operands and results.
TEST(StepProbes, range) {
  for_all_paths([](Column column, const Path& path) {
    if (path.dtype == Dtype::fp16) {
      EXPECT_EQ(run(path, 0, {{0x1p-24, 4}}), 0x34800000U) << path.name;
    } else if (!path.fp8()) {
      const int lowest = path.dtype == Dtype::bf16 ? -133 : -136;
      EXPECT_EQ(run(path, 0, {{std::ldexp(1.0, lowest), std::ldexp(1.0, -126 - lowest)}}), 0x00800000U) << path.name;
      EXPECT_EQ(run(path, 0, {{0x1p-126, 0.5}}), 0x00400000U) << path.name;
    } else {
      EXPECT_EQ(run(path, 0, {{0x1p-9, 0x1p-9}}), 0x36800000U) << path.name;
      // M8 keeps 448 * 448 exactly and adds 2^-4 without loss, as F = 25 does.
      EXPECT_EQ(run(path, 0, {{448, 448}, {0x1p-2, 0x1p-2}}), path.F() == 13 ? 0x48440000U : 0x48440004U) << path.name;
    }
    const bool e8m13 = column == D8 || column == W8;
    EXPECT_EQ(run(path, 0x1p-149, {}), e8m13 ? 0U : 1U) << path.name;
  });
}

/// E6: a zero accumulator has an exponent of its own, below which everything is lost.
TEST(StepProbes, exponent_of_zero) {
  for_all_paths([](Column, const Path& path) {
    if (path.dtype == Dtype::tf32) {
      EXPECT_EQ(run(path, 0, {{0x1p-75 * (1 + 0x1p-9), 0x1p-75}, {0x1p-75 * (1 - 0x1p-9), 0x1p-75}}), 0U) << path.name;
    } else if (path.dtype == Dtype::bf16) {
      const std::vector<Factors> terms = {
          {0x1p-75, 0x1p-75}, {0x1p-75 * (1 - 0x1p-8), 0x1p-75}, {0x1p-79, 0x1p-80}, {0x1p-79, 0x1p-80}};
      EXPECT_EQ(run(path, 0, terms), 0U) << path.name;
    }
  });
}

/// E7: [FLT_MAX, 2^128) is truncated to FLT_MAX, 2^128 is infinite; intermediate sums may exceed it.
TEST(StepProbes, overflow) {
  const double largest = core::dtype_info(Dtype::fp32).max_finite;
  for_all_paths([&](Column, const Path& path) {
    if (path.dtype != Dtype::bf16 && path.dtype != Dtype::tf32) {
      return;
    }
    EXPECT_EQ(run(path, largest, {scaled(1, 103)}), 0x7F7FFFFFU) << path.name;
    EXPECT_EQ(run(path, largest, {scaled(1, 104)}), 0x7F800000U) << path.name;
    EXPECT_EQ(run(path, largest, {scaled(1, 127), scaled(-1, 127)}), 0x7F7FFFFFU) << path.name;
    EXPECT_EQ(run(path, -largest, {scaled(-1, 104)}), 0xFF800000U) << path.name;
  });
}

/// E8, E11, E12: NaN, infinities and zeros.
TEST(StepProbes, specials) {
  const auto nan_word = [](const Path& path, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const auto k = static_cast<std::size_t>(path.instruction.k);
    std::vector<std::uint32_t> left(k, 0);
    std::vector<std::uint32_t> right(k, 0);
    left[0] = a;
    right[0] = b;
    return model::execute(path.instruction, left, path.dtype, right, path.dtype, c);
  };
  constexpr std::uint32_t kNan = 0x7FFFFFFF;
  const auto one = [](Dtype dtype) { return static_cast<std::uint32_t>(core::encode(1.0, dtype)); };
  for_all_paths([&](Column, const Path& path) {
    const double nan = std::nan("");
    const auto nan_operand = static_cast<std::uint32_t>(core::encode(nan, path.dtype));
    EXPECT_EQ(nan_word(path, nan_operand, one(path.dtype), 0), kNan) << path.name;
    EXPECT_EQ(nan_word(path, one(path.dtype), one(path.dtype), 0x7FC00001), kNan) << path.name;
    EXPECT_EQ(run(path, HUGE_VAL, {product(1)}), 0x7F800000U) << path.name;
    EXPECT_EQ(run(path, -HUGE_VAL, {product(1)}), 0xFF800000U) << path.name;
    EXPECT_EQ(run(path, -0.0, {{-0.0, 1}, {-0.0, 1}}), 0U) << path.name;
    if (!core::dtype_info(path.dtype).has_infinity) {
      return;
    }
    EXPECT_EQ(run(path, 0, {{HUGE_VAL, 0}}), kNan) << path.name;
    EXPECT_EQ(run(path, 0, {{HUGE_VAL, 1}, {-HUGE_VAL, 1}}), kNan) << path.name;
    EXPECT_EQ(run(path, HUGE_VAL, {{-HUGE_VAL, 1}}), kNan) << path.name;
    EXPECT_EQ(run(path, 5, {{HUGE_VAL, -2}}), 0xFF800000U) << path.name;
    EXPECT_EQ(run(path, HUGE_VAL, {{HUGE_VAL, 1}}), 0x7F800000U) << path.name;
  });
  for (const Column column : {At, Ht}) {
    for (const Path& path : paths()[column]) {
      EXPECT_EQ(nan_word(path, 0x7F800001, one(Dtype::tf32), 0), 0x7F800000U) << path.name;
    }
  }
}

/// E13: the instruction truncates FP32 words to TF32.
TEST(StepProbes, tf32_operands_are_truncated) {
  for (const Column column : {At, Ht}) {
    for (const Path& path : paths()[column]) {
      const auto k = static_cast<std::size_t>(path.instruction.k);
      std::vector<std::uint32_t> a(k, 0);
      std::vector<std::uint32_t> b(k, 0);
      b[0] = 0x3F800000;
      for (const auto& [word, expected] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
               {0x3F801800, 0x3F800000}, {0x7F7FFFFF, 0x7F7FE000}, {0xBF801FFF, 0xBF800000}}) {
        a[0] = word;
        EXPECT_EQ(model::execute(path.instruction, a, Dtype::tf32, b, Dtype::tf32, 0), expected) << path.name;
      }
    }
  }
}

}  // namespace
}  // namespace numcheck::probe
