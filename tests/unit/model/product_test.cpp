// The vectorised product against the scalar step, on ordinary and on nasty operands, for every instruction set.
#include "model/product.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "core/isa.hpp"
#include "core/parallel.hpp"
#include "model/arithmetic.hpp"
#include "model/fused_step.hpp"
#include "tests/unit/model/steps.hpp"

namespace {

using namespace numcheck;
using core::Dtype;
using model::Schedule;

enum class Data { normal, spread, extreme, tiny, small_sums, large_sums, special };

constexpr Data kAllData[] = {Data::normal,     Data::spread,     Data::extreme, Data::tiny,
                             Data::small_sums, Data::large_sums, Data::special};

/// Values of the format: N(0,1); exponents over 30 binades with cancelling pairs; any bit pattern of the format that is
/// finite; subnormals and numbers near them; numbers whose products are subnormal in the accumulator, or near its
/// overflow; infinities and NaN among others. `accumulate` is the accumulator's format.
std::vector<float> make_values(std::mt19937& random, std::size_t count, Dtype dtype, Dtype accumulate, Data data) {
  const core::DtypeInfo& info = core::dtype_info(dtype);
  const int bits = 1 + info.exponent_bits + info.fraction_bits;
  const auto pattern = [&] {
    const auto word = static_cast<std::uint32_t>(random()) & ((bits < 32 ? 1U << bits : 0U) - 1U);
    return core::decode(dtype == Dtype::tf32 ? word << 13 : word, dtype);
  };
  std::normal_distribution<double> normal;
  std::vector<float> values(count);
  for (float& value : values) {
    double x = 0;
    switch (data) {
      case Data::normal:
        x = normal(random);
        break;
      case Data::spread:
        x = normal(random) * std::ldexp(1.0, static_cast<int>(random() % 30) - 15);
        break;
      case Data::extreme:
        do {
          x = pattern();
        } while (!std::isfinite(x));
        break;
      case Data::tiny:
        x = std::ldexp(normal(random), info.emin - static_cast<int>(random() % 4));
        break;
      case Data::small_sums:
        x = std::ldexp(normal(random), core::dtype_info(accumulate).emin / 2 - static_cast<int>(random() % 8));
        break;
      case Data::large_sums:
        x = std::ldexp(random() % 2 == 0 ? 1.0 : -1.5,
                       accumulate == Dtype::fp16 ? 6 : 62 + static_cast<int>(random() % 2));
        break;
      case Data::special:
        x = random() % 50 == 0 ? pattern() : normal(random);
        x = random() % 200 == 0 ? std::copysign(HUGE_VAL, normal(random)) : x;
        break;
    }
    x = random() % 10 == 0 ? 0.0 : x;
    value = static_cast<float>(core::round_to(x, dtype, core::Overflow::ieee));
    if (data != Data::special && !std::isfinite(value)) {
      value = 1.0F;
    }
  }
  return values;
}

bool same(float x, float y) {
  return (std::isnan(x) && std::isnan(y)) || std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
}

struct Problem {
  std::string mode;
  int sm;
  bool tf32;
  bool promotes;
  int split_k;
};

void PrintTo(const Problem& p, std::ostream* out) {
  *out << p.mode << " on sm_" << p.sm << (p.tf32 ? " as TF32" : "") << (p.promotes ? " promoted" : "") << " split-K "
       << p.split_k;
}

class Products : public testing::TestWithParam<Problem> {
 protected:
  ~Products() override { core::force_isa(initial_); }

  core::Isa initial_ = core::active_isa();
};

TEST_P(Products, equal_the_scalar_steps_for_every_instruction_set) {
  const Problem& problem = GetParam();
  const op::Mode& mode = *op::find_mode(problem.mode);
  const Schedule schedule = model::gemm_schedule(problem.sm, mode, problem.promotes, problem.tf32, problem.split_k);
  const auto operand_dtype = [&](Dtype stored) { return problem.tf32 ? Dtype::tf32 : stored; };
  const Dtype da = operand_dtype(mode.first);
  const Dtype db = operand_dtype(mode.second);
  const Dtype accumulate = model::accumulator_dtype(schedule.step.rho);
  std::mt19937 random(20250101);
  std::size_t nonzero = 0;
  for (const Data data : kAllData) {
    for (const std::int64_t k : {1, 3, 37, 300}) {
      const std::int64_t m = 5;
      const std::int64_t n = 67;  // a whole tile of columns and a little more
      const auto a = make_values(random, static_cast<std::size_t>(m * k), da, accumulate, data);
      const auto b = make_values(random, static_cast<std::size_t>(k * n), db, accumulate, data);
      model::ProductOperands operands{a, b, m, n, k};
      operands.a_emin = core::dtype_info(mode.first).emin;
      operands.b_emin = core::dtype_info(mode.second).emin;
      std::vector<float> expected;
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          const std::vector<float> row(a.begin() + i * k, a.begin() + (i + 1) * k);
          std::vector<float> column;
          for (std::int64_t t = 0; t < k; ++t) {
            column.push_back(b[static_cast<std::size_t>(t * n + j)]);
          }
          expected.push_back(testing_model::element_by_steps(schedule, da, db, row, column));
          nonzero += std::isfinite(expected.back()) && expected.back() != 0 ? 1 : 0;
        }
      }
      for (const core::Isa isa : {core::Isa::baseline, core::Isa::avx2, core::Isa::avx512}) {
        if (!core::is_supported(isa)) {
          continue;
        }
        core::force_isa(isa);
        std::vector<float> got(expected.size(), -77.0F);
        model::simulate_product(schedule, operands, got);
        for (std::size_t i = 0; i < got.size(); ++i) {
          ASSERT_TRUE(same(got[i], expected[i]))
              << core::isa_name(isa) << " data " << static_cast<int>(data) << " k " << k << " element " << i << ": "
              << std::hexfloat << got[i] << " for " << expected[i];
        }
      }
    }
  }
  EXPECT_GT(nonzero, 1000U);
}

INSTANTIATE_TEST_SUITE_P(
    Modes, Products,
    testing::Values(Problem{"fp32", 90, false, false, 1}, Problem{"fp32", 90, false, false, 3},
                    Problem{"tf32", 90, true, false, 1}, Problem{"tf32", 80, true, false, 2},
                    Problem{"bf16", 80, false, false, 1}, Problem{"bf16", 90, false, false, 4},
                    Problem{"fp16", 90, false, false, 1}, Problem{"fp16", 80, false, false, 1},
                    Problem{"fp16_acc16", 80, false, false, 1}, Problem{"fp16_acc16", 90, false, false, 1},
                    Problem{"fp16_acc16", 100, false, false, 2}, Problem{"fp8_e4m3", 89, false, false, 1},
                    Problem{"fp8_e4m3", 90, false, false, 1}, Problem{"fp8_e4m3", 90, false, true, 1},
                    Problem{"fp8_e4m3", 100, false, true, 1}, Problem{"fp8_hybrid", 90, false, true, 2},
                    Problem{"fp8_hybrid", 120, false, false, 1}));

/// Powers of two, seldom NaN, one for every 32 products of each line.
std::vector<float> make_scales(std::mt19937& random, std::int64_t lines, std::int64_t parts) {
  std::vector<float> scales(static_cast<std::size_t>(lines * parts));
  for (float& scale : scales) {
    scale = random() % 100 == 0 ? std::nanf("") : std::ldexp(1.0F, static_cast<int>(random() % 60) - 30);
  }
  return scales;
}

/// A code at the exponent that a scale gives it.
model::Operand scaled_code(float code, Dtype dtype, float scale) {
  model::Operand operand =
      model::decode_operand(static_cast<std::uint32_t>(core::encode(static_cast<double>(code), dtype)), dtype);
  if (std::isnan(scale)) {
    operand.kind = model::Operand::Kind::nan;
  } else {
    operand.exponent = static_cast<std::int16_t>(operand.exponent + std::ilogb(scale));
  }
  return operand;
}

TEST(Products, with_scales_in_them_are_aligned_as_they_are_with_them) {
  constexpr std::int64_t kBlock = 32;
  const Schedule schedule = model::gemm_schedule(100, *op::find_mode("fp8_hybrid"), true, false, 1);
  std::mt19937 random(32);
  for (const Data data : {Data::normal, Data::extreme, Data::tiny}) {
    for (const std::int64_t k : {20, 64, 300}) {
      const std::int64_t m = 5, n = 67, parts = (k + kBlock - 1) / kBlock;
      const auto a = make_values(random, static_cast<std::size_t>(m * k), Dtype::fp8_e4m3, Dtype::fp32, data);
      const auto b = make_values(random, static_cast<std::size_t>(k * n), Dtype::fp8_e5m2, Dtype::fp32, data);
      model::ProductOperands operands{a, b, m, n, k};
      operands.a_emin = core::dtype_info(Dtype::fp8_e4m3).emin;
      operands.b_emin = core::dtype_info(Dtype::fp8_e5m2).emin;
      operands.scales = {make_scales(random, m, parts), make_scales(random, n, parts), parts, kBlock, true};
      std::vector<float> got(static_cast<std::size_t>(m * n));
      model::simulate_product(schedule, operands, got);
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          std::uint32_t c = 0;
          for (std::int64_t part = 0; part < parts; ++part) {
            std::vector<model::Operand> left, right;
            for (std::int64_t t = part * kBlock; t < std::min(k, (part + 1) * kBlock); ++t) {
              left.push_back(scaled_code(a[static_cast<std::size_t>(i * k + t)], Dtype::fp8_e4m3,
                                         operands.scales.a[static_cast<std::size_t>(i * parts + part)]));
              right.push_back(scaled_code(b[static_cast<std::size_t>(t * n + j)], Dtype::fp8_e5m2,
                                          operands.scales.b[static_cast<std::size_t>(j * parts + part)]));
            }
            c = model::fused_step(schedule.step, left, Dtype::fp8_e4m3, right, Dtype::fp8_e5m2, c);
          }
          const float expected = std::bit_cast<float>(c);
          ASSERT_TRUE(same(got[static_cast<std::size_t>(i * n + j)], expected))
              << "k " << k << " [" << i << "," << j << "]: " << std::hexfloat
              << got[static_cast<std::size_t>(i * n + j)] << " for " << expected;
        }
      }
    }
  }
}

TEST(Products, of_chains_have_scales_that_fp32_does_not_hold_together) {
  const Schedule schedule = model::gemm_schedule(90, *op::find_mode("fp32"), false, false, 1);
  const std::vector<float> a(64, 1.5F), b(64, 1.0F);
  model::ProductOperands operands{a, b, 1, 1, 64};
  operands.scales = {{0x1p100F, 0x1p-100F}, {0x1p-90F, 0x1p100F}, 2, 32, true};
  std::vector<float> got(1);
  model::simulate_product(schedule, operands, got);
  EXPECT_EQ(got[0], 48 * 0x1p10F + 48);
  operands.scales = {{0x1p100F, 0x1p100F}, {0x1p100F, 0x1p100F}, 2, 32, true};
  model::simulate_product(schedule, operands, got);
  EXPECT_EQ(got[0], HUGE_VALF);
}

TEST(Products, do_not_depend_on_threads) {
  std::mt19937 random(7);
  const auto a = make_values(random, 100 * 200, Dtype::bf16, Dtype::fp32, Data::normal);
  const auto b = make_values(random, 200 * 150, Dtype::bf16, Dtype::fp32, Data::normal);
  const Schedule schedule = model::gemm_schedule(90, *op::find_mode("bf16"), false, false, 2);
  const int threads = core::thread_count();
  std::vector<float> one(100 * 150);
  std::vector<float> three(100 * 150);
  core::set_thread_count(1);
  model::simulate_product(schedule, {a, b, 100, 150, 200}, one);
  core::set_thread_count(3);
  model::simulate_product(schedule, {a, b, 100, 150, 200}, three);
  core::set_thread_count(threads);
  EXPECT_EQ(one, three);
}

TEST(Products, no_products_give_zeros) {
  const Schedule schedule = model::gemm_schedule(90, *op::find_mode("fp32"), false, false, 1);
  std::vector<float> acc(6, 3.0F);
  model::simulate_product(schedule, {{}, {}, 2, 3, 0}, acc);
  EXPECT_EQ(acc, std::vector<float>(6, 0.0F));
}

TEST(Products, sizes_that_do_not_fit_are_refused) {
  const Schedule schedule = model::gemm_schedule(90, *op::find_mode("fp32"), false, false, 1);
  std::vector<float> values(6, 1.0F);
  std::vector<float> acc(5);
  EXPECT_ANY_THROW(model::simulate_product(schedule, {values, values, 2, 2, 3}, acc));
}

}  // namespace
