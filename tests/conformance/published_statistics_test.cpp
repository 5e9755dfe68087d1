// Error statistics of whole products against figures of an independent simulator of the same hardware models: k = 4096,
// 48 x 48 outputs, reproducible there to about 5 %.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "model/arithmetic.hpp"
#include "model/product.hpp"
#include "model/simulate.hpp"

namespace {

using namespace numcheck;
using core::Dtype;

constexpr std::int64_t kOutputs = 48;
constexpr std::int64_t kDepth = 4096;

struct Errors {
  double relative_rms = 0;  ///< rms(e) / rms(y)
  double slope = 0;         ///< <e, y> / <y, y>
};

/// A is 48 x 4096, B is 4096 x 48, rounded to `dtype`; normal or uniform on (0, 1).
struct Operands {
  std::vector<float> a;
  std::vector<float> b;
};

/// FP8 operands are scaled so that a large one comes near the format's largest number, as a recipe does.
Operands make_operands(Dtype dtype, bool positive) {
  const double scale = dtype == Dtype::fp8_e4m3 ? 64 : 1;
  std::mt19937 random(99);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const auto make = [&](std::vector<float>& values) {
    values.resize(kOutputs * kDepth);
    for (float& x : values) {
      x = static_cast<float>(core::round_to(scale * (positive ? uniform(random) : normal(random)), dtype));
    }
  };
  Operands o;
  make(o.a);
  make(o.b);
  return o;
}

Errors errors_of(const Operands& o, const std::vector<float>& got) {
  double ee = 0;
  double ey = 0;
  double yy = 0;
  for (std::int64_t i = 0; i < kOutputs; ++i) {
    for (std::int64_t j = 0; j < kOutputs; ++j) {
      double y = 0;
      for (std::int64_t t = 0; t < kDepth; ++t) {
        y += static_cast<double>(o.a[static_cast<std::size_t>(i * kDepth + t)]) *
             static_cast<double>(o.b[static_cast<std::size_t>(t * kOutputs + j)]);
      }
      const double e = static_cast<double>(got[static_cast<std::size_t>(i * kOutputs + j)]) - y;
      ee += e * e;
      ey += e * y;
      yy += y * y;
    }
  }
  return {std::sqrt(ee / yy), ey / yy};
}

struct Figure {
  std::string name;
  int sm;
  const char* mode;
  bool tf32;
  bool promotes;
  int split_k;
  Dtype operands;
  bool positive;
  double relative_rms;  ///< 0: not given
  double slope;         ///< 0: not given
};

void PrintTo(const Figure& f, std::ostream* out) {
  *out << f.name;
}

class Statistics : public testing::TestWithParam<Figure> {};

TEST_P(Statistics, are_those_of_an_independent_simulator) {
  const Figure& f = GetParam();
  const Operands o = make_operands(f.operands, f.positive);
  const model::Schedule schedule = model::gemm_schedule(f.sm, *op::find_mode(f.mode), f.promotes, f.tf32, f.split_k);
  model::ProductOperands product{o.a, o.b, kOutputs, kOutputs, kDepth};
  product.a_emin = product.b_emin = core::dtype_info(f.operands).emin;
  std::vector<float> got(kOutputs * kOutputs);
  model::simulate_product(schedule, product, got);
  const Errors e = errors_of(o, got);
  if (f.relative_rms != 0) {
    EXPECT_NEAR(e.relative_rms, f.relative_rms, 0.1 * f.relative_rms);
  }
  if (f.slope != 0) {
    EXPECT_NEAR(e.slope, f.slope, 0.15 * std::fabs(f.slope));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Figures, Statistics,
    testing::Values(
        Figure{"fp32_chain", 90, "fp32", false, false, 1, Dtype::fp32, false, 1.20e-6, 0},
        Figure{"fp32_split_8", 90, "fp32", false, false, 8, Dtype::fp32, false, 4.1e-7, 0},
        Figure{"sm_80_fp16", 80, "fp16", false, false, 1, Dtype::fp16, false, 6.7e-6, -5.9e-6},
        Figure{"sm_80_bf16", 80, "bf16", false, false, 1, Dtype::bf16, false, 5.1e-6, -4.4e-6},
        Figure{"sm_90_fp16", 90, "fp16", false, false, 1, Dtype::fp16, false, 4.9e-6, -4.3e-6},
        Figure{"sm_90_bf16", 90, "bf16", false, false, 1, Dtype::bf16, false, 4.3e-6, -3.8e-6},
        Figure{"sm_80_tf32", 80, "tf32", true, false, 1, Dtype::tf32, false, 1.28e-5, -1.1e-5},
        Figure{"sm_90_tf32", 90, "tf32", true, false, 1, Dtype::tf32, false, 9.6e-6, -8.4e-6},
        Figure{"sm_90_e4m3_fast", 90, "fp8_e4m3", false, false, 1, Dtype::fp8_e4m3, false, 1.27e-3, 0},
        Figure{"sm_90_e5m2_fast", 90, "fp8_hybrid", false, false, 1, Dtype::fp8_e5m2, false, 8.2e-4, 0},
        Figure{"sm_90_e4m3_split", 90, "fp8_e4m3", false, true, 1, Dtype::fp8_e4m3, false, 1.27e-4, -4.3e-5},
        Figure{"sm_100_e4m3", 100, "fp8_e4m3", false, false, 1, Dtype::fp8_e4m3, false, 2.2e-7, 0},
        Figure{"sm_80_fp16_positive", 80, "fp16", false, false, 1, Dtype::fp16, true, 0, -4.5e-5},
        Figure{"sm_90_fp16_positive", 90, "fp16", false, false, 1, Dtype::fp16, true, 0, -2.4e-5},
        Figure{"sm_90_bf16_positive", 90, "bf16", false, false, 1, Dtype::bf16, true, 0, -1.1e-5},
        Figure{"sm_90_e4m3_fast_positive", 90, "fp8_e4m3", false, false, 1, Dtype::fp8_e4m3, true, 0, -6.6e-2},
        Figure{"sm_90_e4m3_split_positive", 90, "fp8_e4m3", false, true, 1, Dtype::fp8_e4m3, true, 0, -5.0e-4}),
    [](const auto& param_info) { return param_info.param.name; });

TEST(Statistics, of_three_tf32_products_in_the_tensor_core) {
  const Operands o = make_operands(Dtype::fp32, false);
  model::GemmTask task;
  task.a = {reinterpret_cast<const std::byte*>(o.a.data()), Dtype::fp32, kOutputs, kDepth, kDepth, 1};
  task.b = {reinterpret_cast<const std::byte*>(o.b.data()), Dtype::fp32, kDepth, kOutputs, kOutputs, 1};
  task.schedule = model::gemm_schedule(90, *op::find_mode("fp32"), false, true);
  task.three_tf32 = true;
  std::vector<float> got(kOutputs * kOutputs);
  task.d = {reinterpret_cast<std::byte*>(got.data()), kOutputs};
  static_cast<void>(model::simulate_gemm(task));
  const Errors e = errors_of(o, got);
  EXPECT_NEAR(e.relative_rms, 2.9e-5, 0.1 * 2.9e-5);
  EXPECT_NEAR(e.slope, -2.5e-5, 0.15 * 2.5e-5);
}

}  // namespace
