// The reference of the router by hand: scores, choices, ties that may go either way, and what is not judged.
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "op/moe.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::evaluate;
using testing::Inputs;
using testing::noise;
using testing::output_named;
using testing::Problem;
using testing::value_of;
using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

Problem router(std::int64_t experts, std::int64_t topk, const char* score, double scaling = 1,
               std::int64_t tokens = 1) {
  return {&op::router_topk(), router_topk_reference(),
          op::to_params(op::RouterTopkParams{
              .tokens = tokens, .experts = experts, .topk = topk, .score = score, .scaling = scaling})};
}

void expect_near(const Numbers& got, const Numbers& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i], 1e-15) << i;
  }
}

const Inputs kDoubling = {{"logits", {std::log(2.0), 0, std::log(4.0)}}};  // in proportion 2 : 1 : 4

TEST(RouterTopk, softmax_before_the_choice) {
  const op::Values values = evaluate(router(3, 2, "softmax_pre"), kDoubling);
  expect_near(value_of(values, "probs"), {2.0 / 7, 0, 4.0 / 7});
  EXPECT_EQ(value_of(values, "routing_map"), (Numbers{1, 0, 1}));
  expect_near(value_of(router(3, 2, "softmax_pre", 2.5), kDoubling, "probs"), {5.0 / 7, 0, 10.0 / 7});
  expect_near(value_of(router(3, 3, "softmax_pre"), kDoubling, "probs"), {2.0 / 7, 1.0 / 7, 4.0 / 7});
}

TEST(RouterTopk, softmax_after_the_choice) {
  expect_near(value_of(router(3, 2, "softmax_post"), kDoubling, "probs"), {1.0 / 3, 0, 2.0 / 3});
  expect_near(value_of(router(3, 1, "softmax_post", 0.5), kDoubling, "probs"), {0, 0, 0.5});
}

TEST(RouterTopk, sigmoid) {
  const Inputs at = {{"logits", {0, std::log(3.0), -std::log(3.0)}}};  // scores 1/2 3/4 1/4
  expect_near(value_of(router(3, 2, "sigmoid"), at, "probs"), {0.4, 0.6, 0});
  expect_near(value_of(router(3, 1, "sigmoid"), at, "probs"), {0, 0.75, 0});  // one expert is not normalised
  expect_near(value_of(router(3, 2, "sigmoid", 2), at, "probs"), {0.8, 1.2, 0});
}

TEST(RouterTopk, the_scaling_is_an_fp32_number) {
  expect_near(value_of(router(1, 1, "softmax_pre", 0.1), {{"logits", {3}}}, "probs"), {static_cast<double>(0.1F)});
}

TEST(RouterTopk, no_tokens) {
  EXPECT_TRUE(value_of(router(3, 2, "sigmoid", 1, 0), {{"logits", {}}}, "probs").empty());
}

TEST(RouterTopk, settled_choices_have_bounds) {
  for (const char* score : {"softmax_pre", "softmax_post", "sigmoid"}) {
    const op::Values values = evaluate(router(3, 2, score), kDoubling);
    for (std::size_t expert = 0; expert < 3; ++expert) {
      EXPECT_EQ(output_named(values, "routing_map").magnitude[expert], 0) << score;
      const float bound = output_named(values, "probs").magnitude[expert];
      EXPECT_TRUE(expert == 1 ? bound == 0 : bound > 0 && bound < 1e-5F) << score << " " << expert << " " << bound;
    }
  }
}

/// What is right beside the reference's own choice, as elements of the two outputs; empty if nothing.
std::map<std::string, std::map<std::size_t, op::Settled>> settled_by(const Problem& problem, const Inputs& inputs,
                                                                     const Numbers& map) {
  const op::Values expected = evaluate(problem, inputs);
  const std::vector<op::Operand> operands = testing::operands_of(problem, inputs);
  const std::vector<op::Delivered> outputs = {{"probs", map}, {"routing_map", map, core::Dtype::uint8}};
  std::map<std::string, std::map<std::size_t, op::Settled>> found;
  for (const op::Settled& one : problem.reference.settle({&problem.params, operands, &expected, outputs})) {
    found[std::string(expected.outputs.at(one.output).port)][one.element] = one;
  }
  return found;
}

// Experts 0, 2 and 3 are equal: any one of them may come second, and the weights are those of the choice.
TEST(RouterTopk, ties_may_go_either_way) {
  const Inputs at = {{"logits", {std::log(2.0), std::log(4.0), std::log(2.0), std::log(2.0), 0}}};
  for (const auto& [score, first, second] : {std::tuple{"softmax_pre", 4.0 / 11, 2.0 / 11},
                                             {"softmax_post", 4.0 / 6, 2.0 / 6},
                                             {"sigmoid", 6.0 / 11, 5.0 / 11}}) {
    const Problem p = router(5, 2, score);
    EXPECT_EQ(value_of(p, at, "routing_map"), (Numbers{1, 1, 0, 0, 0}));
    for (const std::size_t tied : {2U, 3U}) {
      Numbers map = {0, 1, 0, 0, 0};
      map[tied] = 1;
      auto settled = settled_by(p, at, map);
      for (std::size_t expert = 0; expert < 5; ++expert) {
        EXPECT_EQ(settled["routing_map"].at(expert).value, map[expert]);
        const op::Settled& weight = settled["probs"].at(expert);
        EXPECT_NEAR(weight.value, expert == 1 ? first : expert == tied ? second : 0, 1e-15) << score << " " << expert;
        EXPECT_TRUE(weight.asked);
        EXPECT_EQ(weight.magnitude > 0, map[expert] == 1);
        EXPECT_LT(weight.magnitude, 1e-5);
      }
    }
  }
}

TEST(RouterTopk, other_choices_are_wrong) {
  const Problem p = router(5, 2, "softmax_pre");
  const Inputs at = {{"logits", {1, 5, 1, 1, -3}}};
  EXPECT_TRUE(settled_by(p, at, {0, 1, 0, 0, 1}).empty()) << "an expert below the tied ones";
  EXPECT_TRUE(settled_by(p, at, {1, 0, 1, 0, 0}).empty()) << "the first one left out";
  EXPECT_TRUE(settled_by(p, at, {1, 1, 1, 0, 0}).empty()) << "three";
  EXPECT_TRUE(settled_by(p, at, {0, 1, 0, 0, 0}).empty()) << "one";
  const op::Values values = evaluate(p, at);
  for (std::size_t expert = 0; expert < 5; ++expert) {
    EXPECT_EQ(output_named(values, "routing_map").magnitude[expert], 0) << "asked of every element";
  }
}

TEST(RouterTopk, near_ties_within_fp32s_error_may_go_either_way) {
  for (const auto& [gap, settled] : {std::pair{0x1p-24, false}, {0x1p-14, true}}) {
    const Inputs at = {{"logits", {0.5, 0.5 + gap, -1}}};
    EXPECT_EQ(value_of(router(3, 1, "softmax_pre"), at, "routing_map"), (Numbers{0, 1, 0}));
    EXPECT_EQ(settled_by(router(3, 1, "softmax_pre"), at, {1, 0, 0}).empty(), settled) << gap;
    EXPECT_TRUE(settled_by(router(3, 1, "softmax_pre"), at, {0, 0, 1}).empty());
  }
}

// Experts are masked with logits of -infinity: their weights are 0, the others' as if they were not there.
TEST(RouterTopk, masked_experts) {
  const Inputs at = {{"logits", {std::log(2.0), -kInfinity, 0, std::log(4.0)}}};
  for (const char* score : {"softmax_pre", "softmax_post", "sigmoid"}) {
    const op::Values values = evaluate(router(4, 3, score), at);
    const op::Values without = evaluate(router(3, 3, score), {{"logits", {std::log(2.0), 0, std::log(4.0)}}});
    EXPECT_EQ(value_of(values, "routing_map"), (Numbers{1, 0, 1, 1}));
    const Numbers probs = value_of(values, "probs");
    EXPECT_EQ(probs[1], 0);
    const Numbers expected = value_of(without, "probs");
    EXPECT_EQ((Numbers{probs[0], probs[2], probs[3]}), expected) << score;
    for (const std::size_t expert : {0U, 2U, 3U}) {
      const float bound = output_named(values, "probs").magnitude[expert];
      EXPECT_TRUE(bound > 0 && bound < 1e-5F) << score << " " << bound;
    }
  }
  // Two masked ones are tied for the last place.
  const Inputs tied = {{"logits", {-kInfinity, 1, -kInfinity}}};
  expect_near(value_of(router(3, 2, "softmax_pre"), tied, "probs"), {0, 1, 0});
  EXPECT_EQ(settled_by(router(3, 2, "softmax_pre"), tied, {0, 1, 1})["routing_map"].at(2).value, 1);
}

TEST(RouterTopk, nan_is_not_judged) {
  for (const char* score : {"softmax_pre", "softmax_post", "sigmoid"}) {
    const op::Values values = evaluate(router(3, 1, score, 1, 2), {{"logits", {0, kNan, 1, 0, 2, 1}}});
    for (const char* port : {"probs", "routing_map"}) {
      const op::OutputValues& output = output_named(values, port);
      for (std::size_t i = 0; i < 6; ++i) {
        EXPECT_TRUE(std::isfinite(output.value[i])) << "a NaN would be required";
        EXPECT_EQ(std::isnan(output.magnitude[i]), i < 3) << score << " " << port << " " << i;
      }
    }
    EXPECT_EQ(value_of(values, "routing_map")[4], 1) << "the other row stays as it is";
  }
}

// expf(100) overflows: the device's score is 0.
TEST(RouterTopk, scores_that_underflow) {
  const op::Values values = evaluate(router(2, 2, "sigmoid"), {{"logits", {0, -100}}});
  const op::OutputValues& probs = output_named(values, "probs");
  EXPECT_GT(probs.value[1], 0);
  EXPECT_LE(probs.value[1], static_cast<double>(probs.magnitude[1]));
  EXPECT_LT(probs.magnitude[1], 1e-36F);
}

/// FP32 arithmetic with libm's exponential.
Numbers softmax32(const Numbers& logits) {
  float most = static_cast<float>(logits[0]), sum = 0;
  for (const double x : logits) {
    most = std::fmax(most, static_cast<float>(x));
  }
  std::vector<float> terms;
  for (const double x : logits) {
    terms.push_back(std::exp(static_cast<float>(x) - most));
    sum += terms.back();
  }
  Numbers out;
  for (const float term : terms) {
    out.push_back(static_cast<double>(term / sum));
  }
  return out;
}

TEST(RouterTopk, bounds_cover_fp32) {
  double most = 0;
  for (unsigned trial = 0; trial < 50; ++trial) {
    const Numbers logits = noise(64, trial, 3);
    const op::Values values = evaluate(router(64, 64, "softmax_pre"), {{"logits", logits}});
    const op::OutputValues& probs = output_named(values, "probs");
    const Numbers got = softmax32(logits);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto bound = static_cast<double>(probs.magnitude[i]);
      ASSERT_TRUE(bound > 0 && std::isfinite(bound));
      most = std::max(most, std::fabs(got[i] - probs.value[i]) / bound);
    }
  }
  EXPECT_LE(most, 1);
  EXPECT_GE(most, 0.02);
}

std::vector<op::Finding> findings_of(const Problem& problem, const Inputs& inputs, const Numbers& probs,
                                     const Numbers& map) {
  const op::Values expected = evaluate(problem, inputs);
  const std::vector<op::Operand> operands = testing::operands_of(problem, inputs);
  const std::vector<op::Delivered> outputs = {{"probs", probs}, {"routing_map", map, core::Dtype::uint8}};
  return problem.reference.findings({&problem.params, operands, &expected, outputs});
}

TEST(RouterFindings, count_whatever_a_tie_decides) {
  const Problem p = router(4, 2, "softmax_pre");
  const Inputs tied = {{"logits", {1, 5, 1, 1}}};
  const auto measured = [&](const Numbers& probs, const Numbers& map) {
    const std::vector<op::Finding> found = findings_of(p, tied, probs, map);
    EXPECT_EQ(found.at(0).name, "experts per token");
    EXPECT_EQ(found[0].limit, 0);
    EXPECT_EQ(found.at(1).name, "weights elsewhere");
    EXPECT_EQ(found[1].limit, 0);
    return std::pair{found[0].measured, found[1].measured};
  };
  EXPECT_EQ(measured({0.1, 0.9, 0, 0}, {1, 1, 0, 0}), (std::pair{0.0, 0.0}));
  EXPECT_EQ(measured({0, 0.9, 0, 0.1}, {0, 1, 0, 1}), (std::pair{0.0, 0.0}));
  EXPECT_EQ(measured({0, 0.9, 0.1, 0.1}, {0, 1, 1, 1}), (std::pair{1.0, 0.0}));
  EXPECT_EQ(measured({0, 0.9, 0, 0}, {0, 1, 0, 0}), (std::pair{1.0, 0.0}));
  EXPECT_EQ(measured({0.1, 0.9, 0, 0.1}, {1, 1, 0, 0}), (std::pair{0.0, 1.0}));
}

TEST(RouterFindings, tokens_with_nan_are_left_out) {
  const Problem p = router(2, 1, "softmax_pre", 1, 2);
  const std::vector<op::Finding> found =
      findings_of(p, {{"logits", {kNan, 1, 1, 2}}}, {kNan, kNan, 0, 0.7}, {0, 0, 0, 1});
  EXPECT_EQ(found.at(0).measured, 0);
  EXPECT_EQ(found.at(1).measured, 0);
}

}  // namespace
}  // namespace numcheck::reference
