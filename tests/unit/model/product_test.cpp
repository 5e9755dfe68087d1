// The vectorised product against the scalar step, on ordinary and on nasty operands, for every instruction set.
#include "model/product.hpp"

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
