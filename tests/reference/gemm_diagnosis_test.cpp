// The diagnosis of a product distinguishes bits rounded once from bits rounded twice, in full and on a sample.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "gemm_problem.hpp"
#include "op/known_cause.hpp"

namespace numcheck::reference::testing {
namespace {

using core::Dtype;

/// 64 x 48 outputs, k 32, with a C.
GemmProblem problem(double beta) {
  GemmProblem problem;
  problem.gemm.m = 64;
  problem.gemm.n = 48;
  problem.gemm.k = 32;
  problem.gemm.beta = beta;
  const auto noise = [](std::size_t size, std::uint64_t seed) {
    std::vector<double> values(size);
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint64_t bits = (seed + i) * 0x9e3779b97f4a7c15U;
      values[i] = core::round_to(static_cast<double>(bits >> 11) * 0x1p-52 - 1, Dtype::bf16);
    }
    return values;
  };
  problem.a = noise(64 * 32, 1);
  problem.b = noise(32 * 48, 100'000);
  problem.c = noise(64 * 48, 200'000);
  return problem;
}

struct Asked {
  std::vector<double> delivered;  ///< of every element
  std::vector<std::int64_t> sample;
  Dtype dtype = Dtype::bf16;
};

std::vector<op::Finding> diagnosis(GemmProblem& problem, const Asked& asked) {
  problem.sample = asked.sample;
  const op::ReferenceRequest request = problem.request();
  const op::Values expected = gemm_reference().values(request);
  const std::vector<op::Delivered> outputs = {{"d", asked.delivered, asked.dtype, 1}};
  const op::Sample sample{asked.sample};
  return gemm_reference().diagnose({request.params, request.inputs, &expected, outputs, &sample});
}

std::vector<double> rounded(const GemmProblem& problem, std::vector<double> values, bool twice) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double addend = problem.gemm.beta * problem.c[i];
    const double product = values[i] - addend;
    values[i] = core::round_to(twice ? core::round_to(product, Dtype::bf16) + addend : values[i], Dtype::bf16);
  }
  return values;
}

TEST(GemmDiagnosis, tells_one_rounding_from_two) {
  for (const double beta : {1.0, -0.5}) {
    GemmProblem p = problem(beta);
    const std::vector<double> exact = p.output();
    const auto once = diagnosis(p, {.delivered = rounded(p, exact, false), .sample = {}});
    const auto twice = diagnosis(p, {.delivered = rounded(p, exact, true), .sample = {}});
    ASSERT_EQ(once.size(), 1U);
    ASSERT_EQ(twice.size(), 1U);
    EXPECT_EQ(once[0].measured, 0);
    EXPECT_EQ(twice[0].measured, 1);
    EXPECT_EQ(twice[0].port, "d");
    EXPECT_FALSE(std::isfinite(twice[0].limit)) << "it is not a gate";
    EXPECT_NE(twice[0].text.find("rounded to bf16 first"), std::string::npos) << twice[0].text;
  }
}

double measured(const std::vector<op::Finding>& findings, std::string_view name) {
  const auto found = std::ranges::find(findings, name, &op::Finding::name);
  return found == findings.end() ? -1 : found->measured;
}

TEST(GemmDiagnosis, tells_what_was_rounded) {
  GemmProblem p = problem(1);
  p.bias.assign(p.c.begin(), p.c.begin() + 48);
  std::ranges::reverse(p.bias);
  const std::vector<double> exact = p.output();
  for (const char* epilogue : {"none", "relu"}) {
    p.gemm.epilogue = epilogue;
    /// `last`: C, or bias, is added to the rounded rest.
    const auto shares = [&](const auto& last) {
      std::vector<double> d = exact;
      for (std::size_t i = 0; i < d.size(); ++i) {
        const double rest = core::round_to(d[i] - last(i), Dtype::bf16);
        d[i] = core::round_to(rest + last(i), Dtype::bf16);
        d[i] = p.gemm.epilogue == "relu" && d[i] < 0 ? 0 : d[i];
      }
      return diagnosis(p, {.delivered = d, .sample = {}});
    };
    const auto by_c = shares([&](std::size_t i) { return p.c[i]; });
    const auto by_bias = shares([&](std::size_t i) { return p.bias[i % 48]; });
    const auto by_nothing = shares([](std::size_t) { return 0.0; });
    EXPECT_EQ(measured(by_c, op::kProductRounded.name), 1) << epilogue;
    EXPECT_LT(measured(by_c, op::kSumRounded.name), 0.6) << epilogue;
    EXPECT_EQ(measured(by_bias, op::kSumRounded.name), 1) << epilogue;
    EXPECT_LT(measured(by_bias, op::kProductRounded.name), 0.6) << epilogue;
    EXPECT_EQ(measured(by_nothing, op::kSumRounded.name), 0) << epilogue;
  }
}

TEST(GemmDiagnosis, reads_the_elements_of_a_sample) {
  GemmProblem p = problem(1);
  std::vector<double> delivered = rounded(p, p.output(), true);
  std::vector<std::int64_t> sample;
  for (std::int64_t i = 1; i < 64 * 48; i += 3) {
    sample.push_back(i);
  }
  for (std::size_t i = 0; i < delivered.size(); ++i) {
    delivered[i] = i % 3 == 1 ? delivered[i] : 0;  // elements outside the sample do not count
  }
  const auto found = diagnosis(p, {.delivered = delivered, .sample = sample});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].measured, 1);
}

TEST(GemmDiagnosis, is_silent_where_nothing_can_be_told) {
  GemmProblem p = problem(1);
  const std::vector<double> exact = p.output();
  EXPECT_TRUE(diagnosis(p, {.delivered = exact, .sample = {}, .dtype = Dtype::fp32}).empty());
  EXPECT_TRUE(diagnosis(p, {.delivered = rounded(p, exact, true), .sample = {0, 1, 2}}).empty()) << "too few elements";
  p.gemm.epilogue = "gelu";
  EXPECT_TRUE(diagnosis(p, {.delivered = exact, .sample = {}}).empty());
  p.gemm.epilogue = "none";
  p.gemm.beta = 0;
  p.c.clear();
  EXPECT_TRUE(diagnosis(p, {.delivered = exact, .sample = {}}).empty());
}

}  // namespace
}  // namespace numcheck::reference::testing
