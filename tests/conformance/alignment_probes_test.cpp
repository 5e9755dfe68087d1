// Directed probes of the fused step: alignment, truncation, which products share a step.
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

/// A1: largest j for which {1, -1, 2^-j} gives 2^-j.
TEST(StepProbes, alignment_width) {
  constexpr std::array<int, kColumns> kExpected = {23, 24, 24, 24, 13, 25, 25, 13, 25, 25};
  for_all_paths([&](Column column, const Path& path) {
    const int shift = path.fp8() ? 13 : 0;
    int width = -1;
    for (int j = 1; j <= 28; ++j) {
      const double d = run_shifted(path, shift, 0, {1, -1, std::ldexp(1.0, -j)});
      EXPECT_TRUE(d == 0 || d == std::ldexp(1.0, -j)) << path.name;
      width = d != 0 ? j : width;
    }
    EXPECT_EQ(width, kExpected[column]) << path.name;
  });
}

/// A2: the same with c against a product.
TEST(StepProbes, alignment_width_with_accumulator) {
  constexpr std::array<int, kColumns> kExpected = {23, 24, 24, 24, 13, 25, 25, 13, 25, 25};
  for_all_paths([&](Column column, const Path& path) {
    const int shift = path.fp8() ? 13 : 0;
    int width = -1;
    for (int j = 1; j <= 28; ++j) {
      width = run_shifted(path, shift, 1, {-1, std::ldexp(1.0, -j)}) != 0 ? j : width;
    }
    EXPECT_EQ(width, kExpected[column]) << path.name;
    if (column == M8) {  // c is added late: -1 + 2^-25 has lost its last bit before
      EXPECT_EQ(run_shifted(path, shift, 1, {-1, 0x1p-25}), 0x1p-24) << path.name;
    }
  });
}

/// A3, A3n, A4: each term is truncated toward zero by itself, and nothing below the grid is kept.
TEST(StepProbes, alignment_truncates) {
  for_all_paths([&](Column, const Path& path) {
    const int shift = path.fp8() ? 13 : 0;
    const double unit = std::ldexp(1.0, -path.F());
    EXPECT_EQ(run_shifted(path, shift, 0, {1, -1, 1.75 * unit}), unit) << path.name;
    EXPECT_EQ(run_shifted(path, shift, 0, {1, -1, -1.75 * unit}), -unit) << path.name;
    std::vector<double> dust = {1, -1};
    dust.resize(static_cast<std::size_t>(path.instruction.step.L), unit / 2);
    EXPECT_EQ(run_shifted(path, shift, 0, dust), 0) << path.name;
  });
}

/// A5, A6, A6b: products are not normalised before alignment, c is.
TEST(StepProbes, products_are_not_normalised) {
  for_all_paths([&](Column column, const Path& path) {
    const int shift = path.fp8() ? 13 : 0;
    const Factors plus{std::ldexp(1.5, shift / 2), std::ldexp(1.5, shift - shift / 2)};
    const Factors minus{-plus.a, plus.b};
    const double c = std::ldexp(2.25, shift);
    const double unit = std::ldexp(1.0, shift - path.F());
    EXPECT_EQ(value_of(path, run(path, 0, {plus, minus, product(unit)})), unit) << path.name;
    const double late = std::ldexp(0x1p-22, shift);
    EXPECT_EQ(value_of(path, run(path, c, {minus, product(unit)})), column == M8 ? late : 0) << path.name;
    EXPECT_EQ(value_of(path, run(path, c, {minus, product(2 * unit)})), column == M8 ? late : 2 * unit) << path.name;
  });
}

/// A7: a subnormal operand keeps its format's smallest exponent and so coarsens the grid.
TEST(StepProbes, subnormal_operands_are_not_normalised) {
  for_all_paths([&](Column column, const Path& path) {
    if (path.dtype == Dtype::tf32 || column == M8) {
      return;
    }
    const core::DtypeInfo& info = core::dtype_info(path.dtype);
    const int lowest = info.emin - info.fraction_bits;
    const int partner = path.dtype == Dtype::bf16 ? 127 : path.dtype == Dtype::fp16 ? 15 : 8;
    const Factors big{std::ldexp(1.0, lowest), std::ldexp(1.0, partner)};
    const Factors negative{-big.a, big.b};
    const int grid = info.emin + partner - path.F();
    for (int e = grid - 3; e <= grid + 3; ++e) {
      if (e < (path.fp8() ? -18 : -48)) {
        continue;  // the format has no such product
      }
      const double small = std::ldexp(1.0, e);
      EXPECT_EQ(value_of(path, run(path, 0, {big, negative, product(small)})), e >= grid ? small : 0) << path.name;
    }
  });
}

/// E10 (MMA-Sim, equation 10): one sum that distinguishes F = 13, 23, 24 and 25.
TEST(StepProbes, published_discriminator) {
  constexpr std::array<double, kColumns> kExpected = {0, -0.5, -0.5, -0.5, 0, -0.75, -0.75, 0, 0, -0.75};
  for_all_paths([&](Column column, Path path) {
    path.dtype = path.fp8() ? Dtype::fp8_e5m2 : path.dtype;
    const std::vector<Factors> terms = {{-0x1p13, 0x1p10}, product(-0.5), product(-0.25), product(-0.125)};
    EXPECT_EQ(value_of(path, run(path, 0x1p23, terms)), kExpected[column]) << path.name;
  });
}

/// D1: all products of the first step are 2^-j; lowering c can raise D.
TEST(StepProbes, non_monotonicity) {
  struct Family {
    Column column;
    int j;
    std::array<std::uint32_t, 4> words;  ///< for c = 1 - d 2^-24, d = 0 ... 3
  };
  const std::vector<Family> families = {
      {V, 24, {0x3F800000, 0x3F800001, 0x3F800001, 0x3F800000}},
      {A, 24, {0x3F800004, 0x3F800003, 0x3F800003, 0x3F800002}},
      {At, 24, {0x3F800002, 0x3F800001, 0x3F800001, 0x3F800000}},
      {H, 24, {0x3F800008, 0x3F800007, 0x3F800007, 0x3F800006}},
      {Ht, 24, {0x3F800004, 0x3F800003, 0x3F800003, 0x3F800002}},
      {M8, 24, {0x3F800008, 0x3F800008, 0x3F800007, 0x3F800006}},
      {B8, 24, {0x3F800010, 0x3F80000F, 0x3F80000F, 0x3F80000E}},
      {V, 25, {0x3F800000, 0x3F7FFFFF, 0x3F7FFFFE, 0x3F7FFFFD}},
      {T, 25, {0x3F800000, 0x3F800001, 0x3F800001, 0x3F800000}},
      {A, 25, {0x3F800000, 0x3F800001, 0x3F800001, 0x3F800000}},
      {At, 25, {0x3F800000, 0x3F800000, 0x3F800000, 0x3F7FFFFF}},
      {H, 25, {0x3F800004, 0x3F800003, 0x3F800003, 0x3F800002}},
      {Ht, 25, {0x3F800002, 0x3F800001, 0x3F800001, 0x3F800000}},
      {M8, 25, {0x3F800004, 0x3F800004, 0x3F800003, 0x3F800002}},
      {B8, 25, {0x3F800008, 0x3F800007, 0x3F800007, 0x3F800006}},
      {A, 26, {0x3F800000, 0x3F7FFFFF, 0x3F7FFFFE, 0x3F7FFFFD}},
      {H, 26, {0x3F800000, 0x3F800001, 0x3F800001, 0x3F800000}},
      {Ht, 26, {0x3F800000, 0x3F800000, 0x3F800000, 0x3F7FFFFF}},
      {M8, 26, {0x3F800002, 0x3F800002, 0x3F800001, 0x3F800000}},
      {B8, 26, {0x3F800000, 0x3F800003, 0x3F800003, 0x3F800002}},
      {W8, 24, {0x3F800000, 0x3F7FFC00, 0x3F7FFC00, 0x3F7FFC00}},
      {D8, 24, {0x3F800000, 0x3F7FFC00, 0x3F7FFC00, 0x3F7FFC00}},
  };
  for (const Family& family : families) {
    for (const Path& path : paths()[family.column]) {
      const std::vector<double> terms(static_cast<std::size_t>(path.instruction.step.L), std::ldexp(1.0, -family.j));
      for (int d = 0; d < 4; ++d) {
        EXPECT_EQ(run_shifted(path, shift_of(path), 1 - d * 0x1p-24, terms),
                  fp32(family.words[static_cast<std::size_t>(d)]))
            << path.name << " j=" << family.j << " d=" << d;
      }
    }
  }
}

/// B1: which products share a step with the first two; '1' where the unit survives X - X.
TEST(StepProbes, map_of_steps) {
  const std::vector<std::pair<Column, std::string>> maps = {
      {A, "00000011111111"},
      {At, "001111"},
      {D8, std::string(14, '0') + std::string(16, '1')},
      {H, std::string(14, '0')},
      {Ht, "000000"},
      {W8, std::string(30, '0')},
      {M8, "110011001100110011001100110011"},
      {B8, std::string(30, '0')},
  };
  for (const auto& [column, expected] : maps) {
    for (const Path& path : paths()[column]) {
      std::string map;
      for (std::size_t i = 2; i < static_cast<std::size_t>(path.instruction.k); ++i) {
        const double d =
            value_of(path, run_at(path, 0, {{0, scaled(1, 13)}, {1, scaled(-1, 13)}, {i, scaled(1, -13)}}));
        map += d == 0 ? '0' : '1';
      }
      EXPECT_EQ(map, expected) << path.name;
    }
  }
}

/// B2: the accumulator enters with the first step, which takes the low products.
TEST(StepProbes, place_of_the_accumulator) {
  const std::vector<std::pair<Column, std::string>> maps = {
      {A, std::string(7, '0') + std::string(8, '1')},
      {At, "0001111"},
      {D8, std::string(15, '0') + std::string(16, '1')},
      {H, std::string(15, '0')},
      {Ht, "0000000"},
      {W8, std::string(31, '0')},
      {M8, std::string(31, '0')},
      {B8, std::string(31, '0')},
  };
  for (const auto& [column, expected] : maps) {
    for (const Path& path : paths()[column]) {
      std::string map;
      for (std::size_t i = 1; i < static_cast<std::size_t>(path.instruction.k); ++i) {
        map += value_of(path, run_at(path, 0x1p13, {{0, scaled(-1, 13)}, {i, scaled(1, -13)}})) == 0 ? '0' : '1';
      }
      EXPECT_EQ(map, expected) << path.name;
    }
  }
}

}  // namespace
}  // namespace numcheck::probe
