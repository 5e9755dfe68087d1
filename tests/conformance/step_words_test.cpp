// Directed probes of the fused step: words of D, chains, FP16 results.
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

struct WordProbe {
  std::string id;
  double c;
  std::vector<double> terms;
  std::array<std::uint32_t, kColumns> expected;
};

constexpr double kTwoToMinus22 = 0x1p-22;
constexpr double kTwoToMinus23 = 0x1p-23;
constexpr double kTwoToMinus24 = 0x1p-24;
constexpr double kTwoToMinus25 = 0x1p-25;
const std::vector<WordProbe> kWordProbes = {
    {"C1",
     1 + kTwoToMinus22 + kTwoToMinus23,
     {1, 1, 1},
     {0x40800000, 0x40800000, 0x40800000, 0x40800000, 0x40800000, 0x40800000, 0x40800000, 0x40800000, 0x40800001,
      0x40800000}},
    {"C2",
     1 + kTwoToMinus23,
     {},
     {0x3F800001, 0x3F800001, 0x3F800001, 0x3F800001, 0x3F800000, 0x3F800001, 0x3F800001, 0x3F800000, 0x3F800001,
      0x3F800001}},
    {"C3",
     0,
     {1, 1, 0x1p-13},
     {0x40000200, 0x40000200, 0x40000200, 0x40000200, 0x40000000, 0x40000200, 0x40000200, 0x40000000, 0x40000200,
      0x40000200}},
    {"C4",
     1 + 0x1p-12 + 0x1p-14,
     {},
     {0x3F800A00, 0x3F800A00, 0x3F800A00, 0x3F800A00, 0x3F800800, 0x3F800A00, 0x3F800A00, 0x3F800800, 0x3F800A00,
      0x3F800A00}},
    {"H1",
     1 + kTwoToMinus23,
     {kTwoToMinus24},
     {0x3F800001, 0x3F800001, 0x3F800001, 0x3F800001, 0x3F800000, 0x3F800001, 0x3F800001, 0x3F800000, 0x3F800002,
      0x3F800001}},
    {"H2",
     1,
     {kTwoToMinus24, 0x1p-26},
     {0x3F800000, 0x3F800000, 0x3F800000, 0x3F800000, 0x3F800000, 0x3F800000, 0x3F800000, 0x3F800000, 0x3F800001,
      0x3F800000}},
    {"C5",
     1 + kTwoToMinus22 + kTwoToMinus23,
     {1, 1, 1, kTwoToMinus23},
     {0x40800001, 0x40800001, 0x40800001, 0x40800001, 0x40800000, 0x40800001, 0x40800001, 0x40800000, 0x40800001,
      0x40800001}},
    {"C6",
     1.875,
     {1, 1.5, 1.75, 1.875},
     {0x41000000, 0x41000000, 0x41000000, 0x41000000, 0x41000000, 0x41000000, 0x41000000, 0x41000000, 0x41000000,
      0x41000000}},
    {"F1",
     1,
     {-kTwoToMinus24},
     {0x3F800000, 0x3F7FFFFF, 0x3F7FFFFF, 0x3F7FFFFF, 0x3F800000, 0x3F7FFFFF, 0x3F7FFFFF, 0x3F800000, 0x3F7FFFFF,
      0x3F7FFFFF}},
    {"F2",
     1.25,
     {-0x1p-3, -kTwoToMinus25},
     {0x3F900000, 0x3F900000, 0x3F900000, 0x3F900000, 0x3F900000, 0x3F8FFFFF, 0x3F8FFFFF, 0x3F900000, 0x3F900000,
      0x3F8FFFFF}},
    {"F3",
     1,
     {kTwoToMinus24, kTwoToMinus24, kTwoToMinus24, kTwoToMinus24},
     {0x3F800000, 0x3F800002, 0x3F800002, 0x3F800002, 0x3F800000, 0x3F800002, 0x3F800002, 0x3F800000, 0x3F800002,
      0x3F800002}},
    {"F4",
     1,
     {kTwoToMinus25, kTwoToMinus25, kTwoToMinus25, kTwoToMinus25},
     {0x3F800000, 0x3F800000, 0x3F800000, 0x3F800000, 0x3F800000, 0x3F800001, 0x3F800001, 0x3F800000, 0x3F800001,
      0x3F800001}},
    {"F5",
     1 - kTwoToMinus24,
     {kTwoToMinus24, kTwoToMinus24, kTwoToMinus24, kTwoToMinus24},
     {0x3F800001, 0x3F800001, 0x3F800001, 0x3F800001, 0x3F7FFC00, 0x3F800001, 0x3F800001, 0x3F7FFC00, 0x3F800002,
      0x3F800001}},
    {"F6", -1 + kTwoToMinus24, {1, -kTwoToMinus24}, {0x34000000, 0, 0, 0, 0x39000000, 0, 0, 0x39000000, 0, 0}},
};

TEST(StepProbes, words_of_every_column) {
  for (const WordProbe& probe : kWordProbes) {
    for_all_paths([&](Column column, const Path& path) {
      const double expected = fp32(probe.expected[column]);
      EXPECT_EQ(run_shifted(path, shift_of(path), probe.c, probe.terms), expected) << probe.id << " " << path.name;
      std::vector<double> negated;
      for (const double term : probe.terms) {
        negated.push_back(-term);
      }
      EXPECT_EQ(run_shifted(path, shift_of(path), -probe.c, negated), -expected)
          << probe.id << " negated " << path.name;
    });
  }
}

/// G1, G2: where a chain of equal products stops growing.
TEST(StepProbes, stagnation) {
  struct Stop {
    Column column;
    double operand;
    double at;
  };
  const std::vector<Stop> stops = {{V, 0x1p-8, 256},     {T, 0x1p-8, 512},    {A, 0x1p-8, 512}, {At, 0x1p-8, 512},
                                   {H, 0x1p-8, 1024},    {Ht, 0x1p-8, 1024},  {D8, 0x1p-4, 64}, {W8, 0x1p-4, 64},
                                   {B8, 0x1p-4, 0x1p18}, {M8, 0x1p-4, 0x1p21}};
  for (const Stop& stop : stops) {
    for (const Path& path : paths()[stop.column]) {
      const std::vector<std::pair<std::size_t, Factors>> all = [&] {
        std::vector<std::pair<std::size_t, Factors>> terms;
        for (std::size_t i = 0; i < static_cast<std::size_t>(path.instruction.k); ++i) {
          terms.emplace_back(i, Factors{stop.operand, stop.operand});
        }
        return terms;
      }();
      EXPECT_EQ(value_of(path, run_at(path, stop.at, all)), stop.at) << path.name;
      double c = stop.at / 2;
      EXPECT_GT(value_of(path, run_at(path, c, all)), c) << path.name;
    }
  }
}

std::vector<Path> fp16_paths() {
  return {{"sm_70", older(4, 23, -20, Dtype::fp16), Dtype::fp16},
          {"sm_80 mma", from_table(80, InstructionClass::mma, Dtype::fp16, Dtype::fp16), Dtype::fp16},
          {"sm_89 mma", from_table(89, InstructionClass::mma, Dtype::fp16, Dtype::fp16), Dtype::fp16},
          {"sm_90 mma", from_table(90, InstructionClass::mma, Dtype::fp16, Dtype::fp16), Dtype::fp16},
          {"sm_90 wgmma", from_table(90, InstructionClass::wgmma, Dtype::fp16, Dtype::fp16), Dtype::fp16},
          {"sm_100 mma", from_table(100, InstructionClass::mma, Dtype::fp16, Dtype::fp16), Dtype::fp16},
          {"sm_100 tcgen05", from_table(100, InstructionClass::tcgen05, Dtype::fp16, Dtype::fp16), Dtype::fp16}};
}

/// C7 to C10: FP16 results are rounded once from the wide sum.
TEST(StepProbes, fp16_output) {
  for (const Path& path : fp16_paths()) {
    EXPECT_EQ(run(path, 0, products({0.5, 0.5, 0x1p-11, 0x1p-24})), 0x3C01U) << path.name;
    EXPECT_EQ(run(path, 0, products({0x1p-25})), 0x0000U) << path.name;
    EXPECT_EQ(run(path, 0, products({0x1p-25, 0x1p-26})), 0x0001U) << path.name;
    EXPECT_EQ(run(path, 0x1p10, products({0.5})), 0x6400U) << path.name;
    EXPECT_EQ(run(path, 0x1p10, products({1.5})), 0x6402U) << path.name;
    EXPECT_EQ(run(path, 65504, products({16})), 0x7C00U) << path.name;
    EXPECT_EQ(run(path, 65504, products({15.5})), 0x7BFFU) << path.name;
    EXPECT_EQ(run(path, -65504, products({-16})), 0xFC00U) << path.name;
    EXPECT_EQ(run(path, 0, {{HUGE_VAL, 0}}), 0x7FFFU) << path.name;
  }
}

/// E9: the exponent of zero terms when the accumulator is FP16.
TEST(StepProbes, exponent_of_zero_with_fp16_accumulator) {
  const std::array<int, 7> last = {43, 45, 45, 47, 48, 47, 48};
  const auto all = fp16_paths();
  for (std::size_t i = 0; i < all.size(); ++i) {
    int survives = 0;
    for (int j = 26; j <= 48; ++j) {
      const std::uint32_t d = run(all[i], 0, products({0x1p-25, std::ldexp(1.0, -j)}));
      survives = d == 1 ? j : survives;
    }
    EXPECT_EQ(survives, last[i]) << all[i].name;
  }
}

/// C11: the emulated FP8 instruction rounds its sum to FP16 before c is added, the native one does not.
TEST(StepProbes, fp8_with_fp16_output) {
  const std::vector<double> terms = {-1, 0x1p-13};
  for (const int sm : {90, 100}) {
    const Path emulated{"mma", from_table(sm, InstructionClass::mma, Dtype::fp8_e4m3, Dtype::fp16), Dtype::fp8_e4m3};
    EXPECT_EQ(run(emulated, 1, products(terms)), 0x0000U) << sm;
  }
  const Path native{"wgmma", from_table(90, InstructionClass::wgmma, Dtype::fp8_e4m3, Dtype::fp16), Dtype::fp8_e4m3};
  EXPECT_EQ(run(native, 1, products(terms)), 0x0800U);
}

/// The largest number may be anywhere in a step, and products within a step may be swapped.
TEST(StepProbes, order_within_a_step_is_free) {
  for_all_paths([](Column, const Path& path) {
    const auto L = static_cast<std::size_t>(path.instruction.step.L);
    std::vector<Factors> terms;
    for (std::size_t i = 0; i < L; ++i) {
      terms.push_back(scaled((i % 3 == 0 ? -1.5 : 1.25) * (i % 2 == 0 ? 1 : -1), static_cast<int>(i * 7 % 11) - 8));
    }
    const std::uint32_t d = run(path, 0.3125, terms);
    for (std::size_t turn = 1; turn < L; ++turn) {
      std::rotate(terms.begin(), terms.begin() + 1, terms.end());
      EXPECT_EQ(run(path, 0.3125, terms), d) << path.name;
    }
  });
}

}  // namespace
}  // namespace numcheck::probe
