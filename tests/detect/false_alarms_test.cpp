// Clean cases whose errors are not independent, or belong to terms that cancel: none may fail, but planted faults in them
// must.
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "data/distribution.hpp"
#include "mini_run.hpp"
#include "op/gemm.hpp"

namespace numcheck::detect {
namespace {

using data::Distribution;

Distribution distribution(std::string_view name, std::vector<double> params = {}) {
  Distribution out = data::make_distribution(name);
  for (std::size_t i = 0; i < params.size(); ++i) {
    out.params.at(i) = params[i];
  }
  return out;
}

struct CleanCase {
  std::string_view name;
  std::string_view mode;
  int sm = 90;
  op::GemmParams p;
  Distribution common;
  std::vector<std::pair<std::string, Distribution>> ports;
  std::uint64_t seed = 1;
};

void PrintTo(const CleanCase& c, std::ostream* out) {
  *out << c.name;
}

plan::Case make_case(const CleanCase& clean) {
  plan::Case c;
  c.op = &op::gemm();
  c.mode = op::find_mode(clean.mode);
  c.params = op::to_params(clean.p);
  c.backend = "sim";
  c.inputs.common = clean.common;
  c.inputs.ports = {clean.ports.begin(), clean.ports.end()};
  c.seed = clean.seed;
  plan::identify(c);
  return c;
}

op::GemmParams shape(std::int64_t m, std::int64_t n, std::int64_t k) {
  op::GemmParams p;
  p.m = m;
  p.n = n;
  p.k = k;
  return p;
}

/// A constant bias, or constant C, has a single rounding error if all sums lie on one grid; on average, so do products of
/// a constant.
std::vector<CleanCase> shared_roundings() {
  const Distribution tenth = distribution("constant", {0.1});
  op::GemmParams bias = shape(16, 22, 32);
  bias.batch = 4;
  bias.trans_b = bias.bias = true;
  bias.pad_d = 1;
  op::GemmParams both = shape(21, 26, 4);
  both.trans_a = both.bias = true;
  both.beta = 1;
  both.pad_b = both.misalign = 6;
  const Distribution large = distribution("large_mean");
  op::GemmParams grid = shape(256, 256, 2);  // sums of 20 000, spaced 2^-9: 0.1006 is 51.5 spaces
  grid.bias = true;
  const Distribution positive = distribution("positive");
  return {{"constant_bias", "bf16x9", 80, bias, tenth, {{"a", large}}, 221931882},
          {"constant_addends", "fp32_pedantic", 89, both, tenth, {{"a", large}}, 165591270},
          {"half_a_grid", "fp32", 90, grid, large, {{"bias", distribution("constant", {0.1006})}}},
          {"askew_products", "fp32", 90, shape(1024, 1024, 32), positive, {{"b", distribution("constant", {1.6})}}}};
}

/// All rows are equal: 37 outputs, but one error.
std::vector<CleanCase> repeated_sums() {
  op::GemmParams p = shape(37, 1, 83);
  p.alpha = 3.7;
  p.pad_a = 5;
  p.pad_b = 9;
  const Distribution one = distribution("constant");
  return {{"rows_agree", "fp32_pedantic", 100, p, distribution("normal"), {{"a", one}}, 799943724}};
}

/// C and bias cancel most of a sum of products that share a sign, but none of its error.
std::vector<CleanCase> cancelled_sums() {
  const Distribution tenth = distribution("constant", {0.1});
  const Distribution large = distribution("large_mean");
  op::GemmParams by_chance = shape(32, 64, 48);
  by_chance.trans_a = by_chance.trans_b = by_chance.bias = true;
  by_chance.alpha = 0.1;
  by_chance.beta = -1.25;
  by_chance.epilogue = "relu";
  op::GemmParams scaled = shape(88, 96, 32);
  scaled.alpha = -1.25;
  scaled.beta = 3.7;
  op::GemmParams row = shape(1, 76, 31);
  row.alpha = 0.5;
  row.beta = -1.25;
  op::GemmParams residual = shape(48, 40, 1024);
  residual.beta = -1;
  op::GemmParams halves = residual;
  halves.bias = true;
  const Distribution positive = distribution("positive");
  op::GemmParams large_residual = shape(400, 400, 32);
  large_residual.beta = -1;
  const auto sum = [](double value) { return distribution("large_mean", {value, 1}); };
  return {
      {"by_chance", "fp32_fast16bf", 89, by_chance, large, {{"a", tenth}}, 668160927},
      {"scaled", "fp32_fast16bf", 90, scaled, large, {{"a", tenth}}, 144604156},
      {"one_row", "fp32_fast16f", 90, row, large, {{"a", tenth}}, 702928582},
      {"residual", "fp32", 90, residual, positive, {{"c", sum(256)}}},
      {"residual", "tf32", 90, residual, positive, {{"c", sum(256)}}},
      {"residual", "fp16", 80, residual, positive, {{"c", sum(256)}}},
      {"residual", "fp8_e4m3", 90, residual, positive, {{"c", sum(256)}}},
      {"halves", "fp32", 90, halves, positive, {{"c", sum(128)}, {"bias", distribution("constant", {-128})}}},
      {"residual_of_constant",
       "tf32",
       90,
       residual,
       positive,
       {{"a", tenth}, {"c", distribution("constant", {51.25})}}},
      {"large_residual_of_constant",
       "tf32",
       90,
       large_residual,
       positive,
       {{"a", tenth}, {"c", distribution("constant", {1.4})}}},
  };
}

/// Products small against the ulp of their sum are not rounded at random.
std::vector<CleanCase> long_sums() {
  const Distribution positive = distribution("positive");
  const Distribution narrow = distribution("large_mean", {100, 0.01});
  return {{"long_sum", "fp32", 90, shape(16, 16, 1 << 18), positive},
          {"longer_sum", "fp32", 90, shape(8, 9, 1 << 20), positive},
          {"longer_sum_of_equals", "fp32_pedantic", 90, shape(8, 8, 1 << 18), narrow},
          {"long_row_sum", "fp32", 90, shape(9, 8, 1 << 18), positive, {{"a", distribution("constant", {0.1})}}}};
}

/// FP32 subnormals that are rounded to BF16 lose bits by steps of 2^-133, not by their own size.
std::vector<CleanCase> subnormal_operands() {
  op::GemmParams p = shape(56, 37, 1);
  p.trans_a = p.trans_b = true;
  p.alpha = -1e20;
  p.epilogue = "gelu";
  return {{"subnormal_operands", "fp32_fast16bf", 90, p, distribution("log_uniform", {-149, 127}), {}, 3766304402}};
}

/// Sums of subnormals: every step truncates, or rounds in the same direction, by up to 2^-149 or half of it.
std::vector<CleanCase> subnormal_sums() {
  op::GemmParams truncated = shape(24, 16, 32768);
  truncated.trans_a = truncated.trans_b = true;
  op::GemmParams scaled = shape(9, 2, 210839);
  scaled.trans_b = true;
  scaled.alpha = 1e30;
  scaled.beta = 0.1;
  return {{"truncated_subnormals",
           "fp32_fast16bf",
           90,
           truncated,
           distribution("large_mean", {1e-5, 1e-7}),
           {{"b", distribution("log_uniform", {-149, -126})}},
           2934493944},
          {"equal_subnormals",
           "fp32_pedantic",
           90,
           scaled,
           distribution("constant", {1e-40}),
           {{"b", distribution("large_mean", {1e-5, 1e-6})}},
           3535234293}};
}

/// All results are one, which happens to end in zeros.
std::vector<CleanCase> one_result() {
  op::GemmParams p = shape(32, 40, 64);
  p.batch = 3;
  p.trans_b = true;
  p.alpha = 0.1;
  p.epilogue = "gelu";
  return {{"one_result",
           "fp32_fast16f",
           90,
           p,
           distribution("normal"),
           {{"a", distribution("constant", {10.625})}, {"b", distribution("constant", {5.939453125})}},
           809874366}};
}

/// All sums are one number, whatever bits it ends in.
std::vector<CleanCase> constant_operands() {
  op::GemmParams p = shape(11, 12, 2806);
  p.batch = 3;
  p.trans_a = true;
  return {{"constant_operands", "fp32_pedantic", 100, p, distribution("constant", {0.1}), {}, 458366689}};
}

/// 3.4e38 becomes infinite in TF32, and relu turns minus infinity into a 0 that looks like any other, where A is small.
std::vector<CleanCase> infinite_operands() {
  op::GemmParams p = shape(88, 80, 64);
  p.trans_b = p.bias = true;
  p.alpha = 0.5;
  p.epilogue = "relu";
  return {{"infinite_operands", "fp32_fast16f", 89, p, distribution("specials"), {}, 248825308}};
}

/// Sums of products far beyond FP32, of which what remains by chance fits: how large the others are is not known.
std::vector<CleanCase> immense_terms() {
  op::GemmParams p = shape(60, 48, 82), q = shape(45, 16, 4096);
  p.trans_b = q.trans_b = true;
  p.alpha = q.alpha = -1e20;
  q.beta = 1;
  op::GemmParams narrow = shape(26, 47, 4096);
  narrow.trans_b = true;
  narrow.alpha = 0.1;
  const Distribution large = distribution("normal", {1e10});
  return {{"immense_terms", "tf32", 90, p, large, {}, 1000099633},
          {"immense_terms", "fp32_fast16bf", 90, q, large, {}, 2598962910},
          {"immense_terms", "fp8_e4m3", 90, narrow, distribution("normal", {1e20}), {}, 1955866522}};
}

/// The scales' product is infinite, and alpha = 0 times that is NaN.
std::vector<CleanCase> infinite_scales() {
  op::GemmParams p = shape(15, 45, 1);
  p.trans_a = true;
  p.alpha = 0;
  p.epilogue = "relu";
  return {{"infinite_scales", "fp8_e4m3", 90, p, distribution("constant", {-1e38}), {}, 2730946323}};
}

class CleanCases : public testing::TestWithParam<CleanCase> {};

TEST_P(CleanCases, pass) {
  const plan::Case c = make_case(GetParam());
  MiniRunner runner;
  const MiniResult result = runner.run(c, GetParam().sm, {});
  ASSERT_EQ(result.outcome.kind, worker::Outcome::Kind::done) << result.outcome.reason;
  ASSERT_FALSE(result.runs.empty());
  for (const verdict::RunResult& run : result.runs) {
    EXPECT_EQ(first_failing(run), nullptr) << describe_failure(c, run);
  }
}

std::string test_name(const testing::TestParamInfo<CleanCase>& info) {
  return std::string(info.param.name) + "_" + std::string(info.param.mode);
}

INSTANTIATE_TEST_SUITE_P(Shared, CleanCases, testing::ValuesIn(shared_roundings()), test_name);
INSTANTIATE_TEST_SUITE_P(Repeated, CleanCases, testing::ValuesIn(repeated_sums()), test_name);
INSTANTIATE_TEST_SUITE_P(Long, CleanCases, testing::ValuesIn(long_sums()), test_name);
INSTANTIATE_TEST_SUITE_P(Subnormal, CleanCases, testing::ValuesIn(subnormal_operands()), test_name);
INSTANTIATE_TEST_SUITE_P(SubnormalSums, CleanCases, testing::ValuesIn(subnormal_sums()), test_name);
INSTANTIATE_TEST_SUITE_P(OneResult, CleanCases, testing::ValuesIn(one_result()), test_name);
INSTANTIATE_TEST_SUITE_P(Constant, CleanCases, testing::ValuesIn(constant_operands()), test_name);
INSTANTIATE_TEST_SUITE_P(InfiniteScales, CleanCases, testing::ValuesIn(infinite_scales()), test_name);
INSTANTIATE_TEST_SUITE_P(Infinite, CleanCases, testing::ValuesIn(infinite_operands()), test_name);
INSTANTIATE_TEST_SUITE_P(Immense, CleanCases, testing::ValuesIn(immense_terms()), test_name);
INSTANTIATE_TEST_SUITE_P(Cancelled, CleanCases, testing::ValuesIn(cancelled_sums()), test_name);

/// Name of the first gate that fails, empty if none does.
std::string verdict(const CleanCase& clean, const std::string& fault) {
  const plan::Case c = make_case(clean);
  MiniRunner runner;
  const MiniResult result = runner.run(c, clean.sm, {.inject = fault, .classify = false});
  EXPECT_EQ(result.outcome.kind, worker::Outcome::Kind::done) << result.outcome.reason;
  const tolerance::Criterion* failing = result.runs.empty() ? nullptr : first_failing(result.runs.front());
  return failing == nullptr ? "" : failing->name;
}

TEST(FaultsInUnusualCases, are_still_caught) {
  op::GemmParams p = shape(48, 40, 64);
  p.beta = -1;
  const Distribution positive = distribution("positive");
  const CleanCase residual{"residual", "fp32", 90, p, positive, {{"c", distribution("large_mean", {16, 0.1})}}};
  EXPECT_EQ(verdict(residual, ""), "");
  for (const std::string fault : {"tf32_silently", "bf16_inputs", "missing_k_tail", "beta_ignored", "swapped_rows"}) {
    EXPECT_NE(verdict(residual, fault), "") << fault;
  }
  CleanCase biased{"biased", "tf32", 90, shape(96, 80, 256), positive};
  biased.p.bias = true;
  EXPECT_EQ(verdict(biased, ""), "");
  EXPECT_EQ(verdict(biased, "tf32_truncated_inputs"), "G2 rms");
  CleanCase repeated{
      "repeated", "fp32", 90, shape(37, 9, 83), distribution("normal"), {{"a", distribution("constant")}}};
  EXPECT_EQ(verdict(repeated, ""), "");
  EXPECT_EQ(verdict(repeated, "tf32_silently"), "G1 bound");
  repeated.p.k = 4096;
  EXPECT_EQ(verdict(repeated, "tf32_silently"), "G2 rms") << "nine independent errors are enough";
}

/// What the drift of long sums adds to the limits leaves them sharp enough for these.
TEST(FaultsInUnusualCases, are_still_caught_in_long_sums) {
  const CleanCase clean{"long_sum", "fp32", 90, shape(16, 16, 1 << 18), distribution("positive")};
  for (const std::string fault : {"scale_1_01", "unreduced_split_k", "bf16_output_in_fp32"}) {
    EXPECT_NE(verdict(clean, fault), "") << fault;
  }
}

}  // namespace
}  // namespace numcheck::detect
