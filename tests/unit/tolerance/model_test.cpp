// Error models of GEMM: the tables of the source, classes, scales, epilogues, patterns, overflow.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "data/distribution.hpp"
#include "model/error_model.hpp"
#include "op/gemm.hpp"
#include "tolerance/accumulation.hpp"
#include "tolerance/gemm_model.hpp"

namespace numcheck::tolerance {
namespace {

using op::GemmParams;

struct Setting {
  std::string_view mode = "bf16";
  GemmParams p;
  model::PrecisionClass expected = model::PrecisionClass::native;
  int sm = 90;
  model::MatrixArithmetic arithmetic = model::MatrixArithmetic::by_mode_alpha_first;
  model::ModelRequest more;  ///< scales, maxima and patterns
};

model::ErrorModel model_of(const Setting& s, std::string_view port = "d") {
  const op::Params params = op::to_params(s.p);
  model::ModelRequest request = s.more;
  request.params = &params;
  request.mode = op::find_mode(s.mode);
  request.expected = s.expected;
  request.sm = s.sm;
  request.arithmetic = s.arithmetic;
  return gemm_error_model(request, port);
}

GemmParams with_k(std::int64_t k) {
  GemmParams p;
  p.m = p.n = 64;
  p.k = k;
  return p;
}

TEST(GemmModel, bounds_for_long_sums_are_those_of_the_table) {
  constexpr std::int64_t k = 1 << 20;
  const auto n = static_cast<double>(k);
  struct Row {
    std::string_view mode;
    int sm;
    double bound;
  };
  // Section 5.1's table; an FP32 chain over the same operands may have run instead where its bound is larger.
  const Row rows[] = {{"fp16", 80, std::max(1.25 * n * 0x1p-24, n * 0x1p-24)},
                      {"fp16", 90, n * 0x1p-24},
                      {"bf16", 90, n * 0x1p-24},
                      {"fp32", 90, n * 0x1p-24}};
  for (const Row& row : rows) {
    const Setting s{.mode = row.mode, .p = with_k(k), .expected = model::PrecisionClass::fp32, .sm = row.sm};
    EXPECT_NEAR(model_of(s).bound_magnitude / row.bound, 1, 0.02) << row.mode << " on sm_" << row.sm;
  }
  GemmParams fast = with_k(4096);
  fast.accumulate = "fast";
  const double inputs = (1 + 0x1p-4) * (1 + 0x1p-4);
  EXPECT_NEAR(model_of({.mode = "fp8_e4m3", .p = fast}).bound_magnitude / inputs, (1 + 1.0 / 32) * 4096 * 0x1p-13,
              0.001);
  const double promoted = 128 * 0x1p-13 + 8 * 0x1p-13 + (32 + 4) * 0x1p-24;  // P 2^-F + (P/L + 4) 2^-tau + ...
  EXPECT_NEAR(model_of({.mode = "fp8_e4m3", .p = with_k(4096)}).bound_magnitude / inputs, promoted, 1e-4);
}

TEST(GemmModel, fp16_sums_of_random_signs_have_hardly_a_slope) {
  const auto slack = [](data::Pattern a, data::Pattern b) {
    Setting s{.mode = "fp16_acc16", .p = with_k(4096)};
    s.more.first_pattern = a;
    s.more.second_pattern = b;
    return model_of(s).slope_slack;
  };
  const data::Pattern random, positive{.coherence = 1}, constant{.order = data::Order::constant},
      integers{.few_values = true};
  EXPECT_NEAR(slack(random, random), 4096 * 0x1p-22 / 3, 1e-9);
  for (const data::Pattern& other : {positive, integers}) {
    EXPECT_GT(slack(random, other), 1e-3);
    EXPECT_GT(slack(other, random), 1e-3);
  }
  EXPECT_GT(slack(constant, random), 1e-3);
}

TEST(GemmModel, known_conversions_are_no_part_of_the_error) {
  const auto of = [](std::string_view mode, model::PrecisionClass c, bool converted) {
    Setting s{.mode = mode, .p = with_k(1024), .expected = c};
    s.more.converted = converted;
    return model_of(s);
  };
  for (const model::PrecisionClass c :
       {model::PrecisionClass::tf32_rne, model::PrecisionClass::tf32_truncated, model::PrecisionClass::bf16_inputs}) {
    const model::ErrorModel given = of("fp32_fast16bf", c, false), converted = of("fp32_fast16bf", c, true);
    EXPECT_LT(converted.var_second, given.var_second / 1000) << model::class_name(c);
    EXPECT_LT(converted.bound_magnitude, given.bound_magnitude / 10);
    EXPECT_NE(converted.source.find("as converted"), std::string::npos) << converted.source;
  }
  EXPECT_NEAR(of("tf32", model::PrecisionClass::tf32_truncated, true).slope_low,
              of("tf32", model::PrecisionClass::tf32_rne, false).slope_low, 1e-12);
  // FP32 operands are not converted, nor are those of other formats by anything that a run shows.
  EXPECT_EQ(of("fp32", model::PrecisionClass::fp32, true).var_second,
            of("fp32", model::PrecisionClass::fp32, false).var_second);
  EXPECT_EQ(of("bf16", model::PrecisionClass::native, true).var_second,
            of("bf16", model::PrecisionClass::native, false).var_second);
}

TEST(GemmModel, predicted_spread_is_that_of_the_simulated_numbers) {
  // Section 5.3: rms(e) / rms(y) for N(0,1) at k = 4096, at an output with y^2 = S2 = 4096 and A = 0.6366 k. V has to
  // cover the number without being blind: within a factor of 3 on either side.
  const auto relative = [](const model::ErrorModel& m) {
    const double k = 4096;
    const double coherent = k / (0.6366 * k);
    return std::sqrt((m.var_second * k + m.var_value * k + m.var_coherent * coherent * coherent) / k);
  };
  const auto check = [&](Setting s, double simulated) {
    s.p.m = s.p.n = 64;
    s.p.k = 4096;
    const double predicted = relative(model_of(s));
    EXPECT_GT(predicted, 0.8 * simulated) << s.mode << " on sm_" << s.sm;
    EXPECT_LT(predicted, 3 * simulated) << s.mode << " on sm_" << s.sm;
  };
  check({.mode = "fp32", .expected = model::PrecisionClass::fp32}, 1.20e-6);
  check({.mode = "fp16", .sm = 80}, 6.7e-6);
  check({.mode = "bf16", .sm = 80}, 5.1e-6);
  check({.mode = "fp16", .sm = 90}, 4.9e-6);
  check({.mode = "bf16", .sm = 90}, 4.3e-6);
  check({.mode = "tf32", .expected = model::PrecisionClass::tf32_rne, .sm = 90}, 2.92e-4);
  check({.mode = "fp8_e4m3"}, 1.27e-4);
  Setting fast{.mode = "fp8_e4m3"};
  fast.p.accumulate = "fast";
  check(fast, 1.27e-3);
}

TEST(GemmModel, slopes_are_those_of_the_table) {
  // Section 5.2: -(T/2) r_F and the same-sign bias, k = 4096.
  const model::ErrorModel m = model_of({.mode = "fp16", .p = with_k(4096)});
  EXPECT_NEAR(m.slope_low, -4.1e-6, 0.1e-6);
  EXPECT_NEAR(m.slope_low + m.slope_coherent, -2.61e-5, 0.03e-5);
  const model::ErrorModel older = model_of({.mode = "fp16", .p = with_k(4096), .sm = 80});
  EXPECT_NEAR(older.slope_low, -5.5e-6, 0.1e-6);
  EXPECT_NEAR(older.slope_low + older.slope_coherent, -4.95e-5, 0.05e-5);
  EXPECT_EQ(model_of({.mode = "fp32", .p = with_k(4096), .expected = model::PrecisionClass::fp32}).slope_low, 0);
}

TEST(GemmModel, class_decides_what_fp32_storage_means) {
  const auto of = [](model::PrecisionClass c) { return model_of({.mode = "tf32", .p = with_k(256), .expected = c}); };
  const model::ErrorModel fp32 = of(model::PrecisionClass::fp32);
  const model::ErrorModel rne = of(model::PrecisionClass::tf32_rne);
  const model::ErrorModel truncated = of(model::PrecisionClass::tf32_truncated);
  const model::ErrorModel bf16 = of(model::PrecisionClass::bf16_inputs);
  EXPECT_EQ(fp32.kappa, 4);
  EXPECT_EQ(rne.kappa, 3);
  EXPECT_NEAR(std::sqrt(rne.var_second), 0.6 * 0x1p-11, 0.02 * 0x1p-11);
  EXPECT_NEAR(std::sqrt(bf16.var_second), 0.6 * 0x1p-8, 0.02 * 0x1p-8);
  EXPECT_NEAR(truncated.slope_low, -7.04e-4, 0.02e-4);
  EXPECT_NEAR(rne.bound_magnitude, 0x1p-10, 0.1 * 0x1p-10);
  EXPECT_LT(fp32.bound_magnitude, 2e-5);
  EXPECT_NE(rne.source.find("tf32_rne"), std::string::npos);
}

TEST(GemmModel, own_kernel_is_an_fp32_chain) {
  const model::ErrorModel own = model_of({.mode = "tf32",
                                          .p = with_k(256),
                                          .expected = model::PrecisionClass::tf32_rne,
                                          .arithmetic = model::MatrixArithmetic::fp32_chain});
  EXPECT_NEAR(own.bound_magnitude, 256 * 0x1p-24, 1e-12);
  EXPECT_EQ(own.kappa, 4);
}

TEST(GemmModel, factors_and_addends) {
  const model::ErrorModel plain = model_of({.p = with_k(64)});
  GemmParams p = with_k(64);
  p.alpha = 0.5;
  EXPECT_EQ(model_of({.p = p}).slope_slack, 0) << "a power of two is exact";
  p.alpha = 0.1;
  const model::ErrorModel scaled = model_of({.p = p});
  EXPECT_EQ(scaled.slope_slack, 0x1p-24);
  EXPECT_EQ(scaled.bound_value, 2 * 0x1p-24);
  EXPECT_EQ(scaled.bound_magnitude, plain.bound_magnitude);
  p.alpha = 1;
  p.beta = 1;
  p.bias = true;
  const model::ErrorModel added = model_of({.p = p});
  const double enlarged = (1 + 0x1p-8) * (1 + 0x1p-8);  // A is that of the unrounded inputs
  EXPECT_NEAR(added.bound_magnitude - plain.bound_magnitude, 3 * 0x1p-24 * enlarged, 1e-12);
  EXPECT_EQ(added.bound_value, 0) << "terms may cancel, so only A bounds them";
  p.epilogue = "gelu";
  EXPECT_NEAR(model_of({.p = p}).bound_magnitude - added.bound_magnitude, 5 * 0x1p-24, 1e-12);
  p.epilogue = "relu";
  EXPECT_TRUE(model_of({.p = p}).nan_may_become_zero);
}

TEST(GemmModel, quantised_outputs_and_amax) {
  Setting s{.mode = "fp8_e4m3", .p = with_k(64)};
  s.p.output = "fp8_e4m3";
  s.more.output_scale = 3;
  const model::ErrorModel d = model_of(s);
  EXPECT_EQ(d.output, core::Dtype::fp8_e4m3);
  EXPECT_EQ(d.output_scale, 3);
  s.more.output_scale = 1;
  const model::ErrorModel amax = model_of(s, "d_amax");
  EXPECT_EQ(amax.output, core::Dtype::fp32);
  EXPECT_TRUE(amax.overflow_may_be_finite);
  EXPECT_THROW((void)model_of(s, "e"), core::InternalError);
}

TEST(GemmModel, subnormal_operands_widen_the_bound) {
  Setting s{.mode = "fp8_e4m3", .p = with_k(32)};
  const double without = model_of(s).bound_absolute;
  s.more.first_max = s.more.second_max = 448;
  s.more.first_scale = s.more.second_scale = 0.5;
  const model::ErrorModel m = model_of(s);
  const double star = 0x1p-6 * 448 * 2 + 0x1p-12;  // 2^emin max|b| + 2^emin max|a| + 2^(2 emin)
  EXPECT_GT(m.bound_absolute, without);
  EXPECT_NEAR(m.bound_absolute, 32 * (32 * 0x1p-13 + 5 * 0x1p-13) * star * 0.25, 1e-3);
  EXPECT_GT(m.var_absolute, 0);
}

TEST(GemmModel, repeated_operands_leave_only_the_bound) {
  Setting s{.mode = "fp32", .p = with_k(4096), .expected = model::PrecisionClass::fp32};
  EXPECT_EQ(model_of(s).var_magnitude, 0);
  s.more.first_pattern.order = data::Order::structured;
  model::ErrorModel m = model_of(s);
  EXPECT_DOUBLE_EQ(std::sqrt(m.var_magnitude) * m.kappa, m.bound_magnitude);
  EXPECT_TRUE(std::isinf(m.slope_slack));
  s.more.first_pattern.order = data::Order::constant;
  EXPECT_EQ(model_of(s).var_magnitude, 0) << "a constant times random numbers is random";
  s.more.second_pattern.order = data::Order::constant;
  EXPECT_GT(model_of(s).var_magnitude, 0);
}

TEST(GemmModel, constant_operands_share_one_rounding_error) {
  Setting s{.mode = "tf32", .p = with_k(64), .expected = model::PrecisionClass::tf32_rne};
  s.more.first_pattern.order = data::Order::constant;
  s.more.first_max = 1;
  EXPECT_EQ(model_of(s).slope_slack, 0) << "1 is a TF32 number";
  s.more.first_max = static_cast<float>(0.1);
  EXPECT_GT(model_of(s).slope_slack, 1e-5);
  EXPECT_LT(model_of(s).slope_slack, 0x1p-11);
}

TEST(GemmModel, overflow) {
  Setting s{.mode = "fp32", .p = with_k(16), .expected = model::PrecisionClass::fp32};
  s.more.first_max = s.more.second_max = 10;
  EXPECT_NEAR(model_of(s).overflow_magnitude, 0.99 * 0x1p128, 1e30);
  EXPECT_FALSE(model_of(s).overflow_possible);
  s.more.first_max = 3e38;
  EXPECT_TRUE(model_of(s).overflow_possible);
  s.mode = "tf32";
  s.expected = model::PrecisionClass::tf32_rne;
  EXPECT_GT(model_of(s).overflow_magnitude, 0);
  s.more.first_max = std::numeric_limits<float>::max();
  EXPECT_GT(model_of(s).overflow_magnitude, 0) << "only rows and columns with such an operand are excused";
  EXPECT_LT(model_of(s).operand_limit, s.more.first_max) << "infinite when rounded to TF32";
  s.mode = "fp16_acc16";
  s.more.first_max = 10;
  EXPECT_NEAR(model_of(s).overflow_magnitude, 0.99 * 65520, 100);
  s.mode = "fp8_e4m3";
  s.more.first_scale = s.more.second_scale = 1e30;
  EXPECT_EQ(model_of(s).overflow_magnitude, 0) << "the product of the scales is infinite";
}

TEST(GemmModel, no_products_no_error) {
  for (const std::string_view mode : {"fp32", "tf32", "bf16", "fp16_acc16", "fp8_e4m3"}) {
    const model::ErrorModel m = model_of({.mode = mode, .p = with_k(0), .expected = model::PrecisionClass::fp32});
    EXPECT_TRUE(std::isfinite(m.bound_magnitude)) << mode;
    EXPECT_LT(m.bound_absolute, 1e-6) << mode;
  }
}

TEST(GemmModel, products_that_alpha_leaves_out_have_no_error) {
  for (const std::string_view mode : {"fp32", "tf32", "bf16", "fp16_acc16", "fp8_e4m3"}) {
    GemmParams p = with_k(1 << 14), empty = with_k(0);
    p.alpha = empty.alpha = 0;
    p.beta = empty.beta = 0.1;
    const model::ErrorModel none = model_of({.mode = mode, .p = empty}), left_out = model_of({.mode = mode, .p = p});
    EXPECT_EQ(left_out.bound_magnitude, none.bound_magnitude) << mode;
    EXPECT_EQ(left_out.var_value, none.var_value) << mode;
    EXPECT_EQ(left_out.slope_low, none.slope_low) << mode;
  }
}

TEST(Pattern, of_distributions) {
  const auto expect = [](const data::Distribution& d, data::Order order, double coherence) {
    const data::Pattern pattern = data::pattern_of(d, core::Dtype::fp32);
    EXPECT_EQ(pattern.order, order) << d.name;
    EXPECT_NEAR(pattern.coherence, coherence, 1e-9) << d.name;
  };
  for (const std::string_view name : {"normal", "outliers", "ties", "specials", "exact", "uniform", "log_uniform"}) {
    expect(data::make_distribution(name), data::Order::random, 0);
  }
  expect(data::make_distribution("positive"), data::Order::random, 1);
  expect(data::make_distribution("constant"), data::Order::constant, 1);
  expect(data::make_distribution("structured"), data::Order::signed_runs, 0);
  data::Distribution d = data::make_distribution("large_mean");
  expect(d, data::Order::random, 1);
  d.params.at(1) = 0.01;
  expect(d, data::Order::structured, 1);  // all elements nearly equal
  d.params = {1.0, 1.0};
  expect(d, data::Order::random, 1 / (0.6826894921370859 + 2 * 0.24197072451914337));  // erf(x), density at one sigma
  d.params = {0.0, 1.0};
  expect(d, data::Order::random, 0);
  EXPECT_EQ(data::pattern_of(data::make_distribution("large_mean"), core::Dtype::bf16).order, data::Order::random);
  d = data::make_distribution("uniform");
  d.params = {0.4972, 0.5012};
  EXPECT_EQ(data::pattern_of(d, core::Dtype::fp16).order, data::Order::random);
  EXPECT_EQ(data::pattern_of(d, core::Dtype::bf16).order, data::Order::structured) << "two numbers of BF16 lie there";
  d.params = {0.998, 1.0295};
  EXPECT_EQ(data::pattern_of(d, core::Dtype::bf16).order, data::Order::structured) << "five";
  d.params = {0.5, 1.0};
  EXPECT_EQ(data::pattern_of(d, core::Dtype::fp8_e4m3).order, data::Order::random) << "eight";
  d.params = {-0.5, -0.1};
  EXPECT_EQ(data::pattern_of(d, core::Dtype::fp8_e5m2).order, data::Order::random) << "nine";
  d = data::make_distribution("uniform");
  d.params = {5.0, 5.0};
  expect(d, data::Order::structured, 1);
  d.params = {-1.0, 3.0};
  expect(d, data::Order::random, 0.8);  // mean 1, mean magnitude (1 / 2 + 9 / 2) / 4
  d.params = {-3.0, 0.0};
  expect(d, data::Order::random, 1);
  d = data::make_distribution("log_uniform");
  d.params.at(2) = false;
  expect(d, data::Order::random, 1);
}

TEST(Accumulation, envelope_is_the_larger_of_both) {
  const Accumulation a{.magnitude = 1, .second = 5, .slope = 2};
  const Accumulation b{.magnitude = 3, .second = 4, .coherent = 7};
  const Accumulation c = either_of(a, b);
  EXPECT_EQ(c.magnitude, 3);
  EXPECT_EQ(c.second, 5);
  EXPECT_EQ(c.coherent, 7);
  EXPECT_EQ(c.slope, 2);
}

TEST(GemmModel, results_in_fp32_keep_the_bits_of_the_accumulator) {
  const auto spacing_of = [](std::string_view mode, GemmParams p, Setting s = {}) {
    s.mode = mode;
    s.p = p;
    s.p.output = "fp32";
    return model_of(s).spacing;
  };
  EXPECT_NEAR(spacing_of("bf16", with_k(256))->value, 0x1p-22, 0x1p-24);
  GemmParams fast = with_k(256);
  fast.accumulate = "fast";
  EXPECT_NEAR(spacing_of("fp8_e4m3", fast)->value, 0x1p-13, 0x1p-15) << "E8M13";
  EXPECT_NEAR(spacing_of("fp8_e4m3", with_k(4096))->value, 0x1p-13 / 32, 0x1p-20) << "the finest of 32 chains";
  EXPECT_EQ(spacing_of("bf16", with_k(256))->magnitude, 0) << "a random walk is hardly larger than its end";
  Setting ordered;
  ordered.more.first_pattern.order = data::Order::structured;
  EXPECT_GT(spacing_of("bf16", with_k(256), ordered)->magnitude, 0) << "partial sums may be as large as A";
  GemmParams added = with_k(256);
  added.bias = true;
  EXPECT_GT(spacing_of("bf16", added)->magnitude, 0) << "a bias may cancel";
  GemmParams enlarged = with_k(1);
  enlarged.alpha = 1e20;
  EXPECT_GE(spacing_of("bf16", enlarged)->absolute, 1e20 * 0x1p-149) << "of a product that is subnormal";
  EXPECT_FALSE(model_of({.mode = "bf16", .p = with_k(256)}).spacing.has_value());
  EXPECT_FALSE(model_of({.mode = "tf32", .p = with_k(256), .expected = model::PrecisionClass::tf32_rne}).spacing)
      << "what rounding leaves of the operands is not known without them";
}

}  // namespace
}  // namespace numcheck::tolerance
