// The references of the mixture-of-experts moves by hand, and each undoing the other.
#include "op/moe.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::derived;
using testing::evaluate;
using testing::Inputs;
using testing::noise;
using testing::output_named;
using testing::Problem;
using testing::value_of;
using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

Problem permute(const op::MoePermuteParams& p, std::string_view mode = "fp32") {
  return {&op::moe_permute(), moe_permute_reference(), op::to_params(p), mode};
}
Problem unpermute(const op::MoeUnpermuteParams& p, std::string_view mode = "fp32") {
  return {&op::moe_unpermute(), moe_unpermute_reference(), op::to_params(p), mode};
}

// Three tokens, two experts each; the second copy of token 1 is dropped.
const Numbers kMap = {2, 0, 4, 1, -1, 3};

TEST(MoePermute, by_hand) {
  const Inputs at = {{"x", {1, 2, 3, 4, 5, 6}}, {"row_id_map", kMap}};
  const op::Values values = evaluate(permute({.tokens = 3, .hidden = 2, .topk = 2, .dropped = 1}), at);
  EXPECT_EQ(value_of(values, "y"), (Numbers{3, 4, 1, 2, 1, 2, 5, 6, 5, 6}));
  EXPECT_TRUE(output_named(values, "y").bit_exact);
}

TEST(MoePermute, moves_whatever_is_there) {
  const Inputs at = {{"x", {kInfinity, kNan, -0.0}}, {"row_id_map", {2, 0, 1}}};
  const Numbers y = value_of(permute({.tokens = 3, .hidden = 1}), at, "y");
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_TRUE(y[1] == 0 && std::signbit(y[1]));
  EXPECT_EQ(y[2], kInfinity);
}

TEST(MoeUnpermute, by_hand) {
  const op::MoeUnpermuteParams p{.tokens = 3, .hidden = 2, .topk = 2, .dropped = 1};
  const Inputs at = {
      {"x", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}, {"row_id_map", kMap}, {"probs", {0.5, 0.25, 2, 100, 1, -1}}};
  const op::Values values = evaluate(unpermute(p), at);
  EXPECT_EQ(value_of(values, "y"), (Numbers{5 * 0.5 + 3 * 0.25, 6 * 0.5 + 4 * 0.25, 2, 4, 9 - 7, 10 - 8}));
  EXPECT_EQ(output_named(values, "y").reduction, 2);
  EXPECT_EQ(testing::terms_of(values, "y"), (Numbers{3.25, 4, 2, 4, 16, 18}));
  EXPECT_FALSE(output_named(values, "y").bit_exact);
  op::MoeUnpermuteParams plain = p;
  plain.probs = false;
  EXPECT_EQ(value_of(unpermute(plain), at, "y"), (Numbers{8, 10, 1, 2, 16, 18}));
}

TEST(Moe, no_tokens_and_nothing_kept) {
  EXPECT_TRUE(value_of(permute({.tokens = 0, .hidden = 2}), {{"x", {}}, {"row_id_map", {}}}, "y").empty());
  const Inputs dropped = {{"x", {}}, {"row_id_map", {-1, -1}}, {"probs", {1, 1}}};
  EXPECT_EQ(value_of(unpermute({.tokens = 2, .hidden = 1, .dropped = 2}), dropped, "y"), (Numbers{0, 0}));
}

TEST(Moe, maps_are_permutations_by_their_draws) {
  const Problem p = permute({.tokens = 2, .hidden = 1, .topk = 2, .dropped = 1});
  EXPECT_EQ(derived(p, {}, "row_id_map", {0.3, -1, 2, 0.5}), (Numbers{1, 0, -1, 2}));
  EXPECT_EQ(derived(p, {}, "row_id_map", {7, 7, 7, 7}), (Numbers{0, 1, 2, -1})) << "equal draws keep their order";
  const Problem large = unpermute({.tokens = 500, .hidden = 1, .topk = 4, .dropped = 100});
  Numbers map = derived(large, {}, "row_id_map", noise(2000, 1));
  EXPECT_EQ(std::ranges::count(map, -1.0), 100);
  std::ranges::sort(map);
  Numbers places(1900);
  std::iota(places.begin(), places.end(), 0.0);
  EXPECT_EQ(Numbers(map.begin() + 100, map.end()), places);
}

TEST(Moe, unpermute_undoes_permute) {
  for (const std::int64_t topk : {1, 3}) {
    const Problem there = permute({.tokens = 40, .hidden = 8, .topk = topk});
    const auto copies = static_cast<std::size_t>(40 * topk);
    const Numbers map = derived(there, {}, "row_id_map", noise(copies, 1));
    const Numbers x = noise(40 * 8, 2);
    const Numbers y = value_of(there, {{"x", x}, {"row_id_map", map}}, "y");
    const Inputs at = {{"x", y}, {"row_id_map", map}, {"probs", Numbers(copies, 1.0)}};
    for (const bool probs : {true, false}) {
      const Numbers back = value_of(unpermute({.tokens = 40, .hidden = 8, .topk = topk, .probs = probs}), at, "y");
      for (std::size_t i = 0; i < x.size(); ++i) {
        EXPECT_EQ(back[i], static_cast<double>(topk) * x[i]) << i;  // exact: FP32 numbers added up in double
      }
    }
  }
}

// <permute x, y> = <x, unpermute y>, with integers to the last bit, also where copies are dropped.
TEST(Moe, permute_and_unpermute_are_adjoint) {
  const Problem there = permute({.tokens = 30, .hidden = 4, .topk = 2, .dropped = 7});
  const Problem back = unpermute({.tokens = 30, .hidden = 4, .topk = 2, .dropped = 7, .probs = false});
  const Numbers map = derived(there, {}, "row_id_map", noise(60, 1));
  const auto integers = [](std::size_t count, unsigned seed) {
    Numbers values = noise(count, seed, 100);
    std::ranges::for_each(values, [](double& each) { each = std::round(each); });
    return values;
  };
  const Numbers x = integers(120, 2), y = integers(53 * 4, 3);
  const double along = testing::dot(value_of(there, {{"x", x}, {"row_id_map", map}}, "y"), y);
  EXPECT_EQ(along, testing::dot(x, value_of(back, {{"x", y}, {"row_id_map", map}}, "y")));
  EXPECT_NE(along, 0);
}

// Linear in x and in probs: differences with a step of 1 are the derivatives.
TEST(MoeUnpermute, derivatives) {
  const Problem p = unpermute({.tokens = 3, .hidden = 2, .topk = 2, .dropped = 1});
  Inputs at = {{"x", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}, {"row_id_map", kMap}, {"probs", {0.5, 0.25, 2, 8, 1, -1}}};
  const Numbers y = value_of(p, at, "y");
  for (std::size_t copy = 0; copy < 6; ++copy) {
    if (kMap[copy] < 0) {
      continue;
    }
    const std::size_t token = copy % 3, k = copy / 3;
    const auto element = static_cast<std::size_t>(kMap[copy]) * 2 + 1;
    const double before = at["x"][element];
    at["x"][element] += 1;
    EXPECT_EQ(value_of(p, at, "y")[token * 2 + 1] - y[token * 2 + 1], at["probs"][token * 2 + k]) << copy;
    at["x"][element] = before;
    at["probs"][token * 2 + k] += 1;
    EXPECT_EQ(value_of(p, at, "y")[token * 2 + 1] - y[token * 2 + 1], before) << copy;
    at["probs"][token * 2 + k] -= 1;
  }
}

/// As TransformerEngine's kernel does: every step rounded to the format, k ascending.
double in_format(const Numbers& x, const Numbers& probs, core::Dtype format) {
  double sum = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double term = core::round_to(x[k] * core::round_to(probs[k], format), format);
    sum = core::round_to(sum + term, format);
  }
  return sum;
}

// One token whose experts' rows are x: the bound covers the format's arithmetic, also of tiny probabilities, which are
// subnormal numbers of FP16, and is within reach.
TEST(MoeUnpermute, bounds_cover_the_formats_arithmetic) {
  constexpr std::int64_t kTopk = 6;
  Numbers map(kTopk);
  std::iota(map.begin(), map.end(), 0.0);
  for (const auto& [mode, format] :
       {std::pair{"fp32", core::Dtype::fp32}, {"bf16", core::Dtype::bf16}, {"fp16", core::Dtype::fp16}}) {
    double most = 0;
    for (unsigned trial = 0; trial < 400; ++trial) {
      Numbers x = noise(kTopk, trial, 1000), probs = noise(kTopk, trial + 1000, trial % 2 == 0 ? 0.2 : 0x1p-19);
      std::ranges::for_each(x, [format = format](double& each) { each = core::round_to(each, format); });
      const op::Values values = evaluate(unpermute({.tokens = 1, .hidden = 1, .topk = kTopk}, mode),
                                         {{"x", x}, {"row_id_map", map}, {"probs", probs}});
      const op::OutputValues& y = output_named(values, "y");
      const auto bound = static_cast<double>(y.magnitude[0]);
      ASSERT_TRUE(bound > 0 && std::isfinite(bound));
      ASSERT_GT(y.deviation[0], 0);
      most = std::max(most, std::fabs(in_format(x, probs, format) - y.value[0]) / bound);
    }
    EXPECT_LE(most, 1) << mode;
    EXPECT_GE(most, 0.1) << mode;
  }
}

/// y and B of one token with two experts' rows of one column.
std::pair<double, double> one_token(const Numbers& x, const Numbers& probs, std::string_view mode) {
  const op::Values values = evaluate(unpermute({.tokens = 1, .hidden = 1, .topk = 2}, mode),
                                     {{"x", x}, {"row_id_map", {0, 1}}, {"probs", probs}});
  return {output_named(values, "y").value[0], static_cast<double>(output_named(values, "y").magnitude[0])};
}

// An intermediate overflow happens in the format, and stays.
TEST(MoeUnpermute, overflow_is_the_formats) {
  EXPECT_EQ(one_token({60000, 60000}, {1, 1}, "fp16").first, kInfinity);
  EXPECT_EQ(one_token({60000, 60000}, {1, 1}, "fp32").first, 120000);
  EXPECT_EQ(one_token({60000, -60000}, {1, 1}, "fp16").first, 0);
  EXPECT_TRUE(std::isfinite(one_token({60000, -60000}, {1, 1}, "fp16").second));
  EXPECT_EQ(one_token({1, 2}, {1e6, 1}, "fp16").first, kInfinity) << "a probability beyond the format";
  EXPECT_TRUE(std::isnan(one_token({1, -1}, {1e6, 1e6}, "fp16").first));
  // Infinity times a probability that is zero in the format.
  EXPECT_TRUE(std::isnan(one_token({kInfinity, 1}, {1e-9, 1}, "fp16").first));
  EXPECT_EQ(one_token({kInfinity, 1}, {1e-9, 1}, "fp32").first, kInfinity);
  EXPECT_TRUE(std::isnan(one_token({kNan, 1}, {1, 1}, "bf16").first));
}

// A product beyond the format that a fused addition brings back: finite or infinite, so it is not judged.
TEST(MoeUnpermute, is_not_judged_where_it_depends_on_the_multiplication) {
  const auto [sum, bound] = one_token({-40000, 40000}, {1, 2}, "fp16");
  EXPECT_EQ(sum, 0);
  EXPECT_TRUE(std::isnan(bound));
}

}  // namespace
}  // namespace numcheck::reference
