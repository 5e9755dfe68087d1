// The reference of delayed scaling: a series worked out by hand, and what every course makes of its draws.
#include "op/fp8_recipe.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::derived;
using testing::evaluate;
using testing::Inputs;
using testing::noise;
using testing::Problem;
using testing::value_of;
using Numbers = std::vector<double>;

Problem problem_of(const op::Fp8RecipeParams& p) {
  return {&op::fp8_recipe(), fp8_recipe_reference(), op::to_params(p)};
}

double inverse(double scale) {
  return static_cast<double>(1.0F / static_cast<float>(scale));
}

TEST(Fp8RecipeReference, two_tensors_by_hand) {
  const Problem problem = problem_of({.steps = 3, .tensors = 2, .history = 3});
  const Inputs inputs = {{"history", {0, 0, 0, 0, 0, 0}}, {"scale", {1, 2}}, {"amaxes", {7, 0, 14, 4, 3.5, 1}}};
  const op::Values values = evaluate(problem, inputs);
  EXPECT_EQ(value_of(values, "scales"), Numbers({1, 2, 64, 2, 32, 112, 32, 112}));
  EXPECT_EQ(value_of(values, "scale_invs"), Numbers({1, 0.5, inverse(64), 0.5, inverse(32), inverse(112)}));
  EXPECT_EQ(value_of(values, "new_history"), Numbers({0, 0, 14, 4, 3.5, 1}));
  for (const op::OutputValues& output : values.outputs) {
    EXPECT_TRUE(output.bit_exact) << output.port;
  }
}

TEST(Fp8RecipeReference, modules_have_histories_of_their_own) {
  const Problem problem = problem_of({.steps = 1, .tensors = 2, .modules = 2, .history = 2});
  // By module, then slot, then tensor.
  const Inputs inputs = {
      {"history", {0, 0, 7, 14, 0, 0, 28, 56}}, {"scale", {1, 1, 1, 1}}, {"amaxes", {0.5, 0.25, 2, 4}}};
  const op::Values values = evaluate(problem, inputs);
  EXPECT_EQ(value_of(values, "scales"), Numbers({1, 1, 1, 1, 64, 32, 16, 8}));
  EXPECT_EQ(value_of(values, "new_history"), Numbers({0, 0, 0.5, 0.25, 0, 0, 2, 4}));
}

TEST(Fp8RecipeReference, after_a_reduction_idle_tensors_keep_their_state) {
  const Problem problem = problem_of({.steps = 2, .tensors = 2, .history = 3, .kernel = "after_reduction"});
  const Inputs inputs = {
      {"history", {0, 0, 7, 7, 1, 1}}, {"scale", {5, 5}}, {"amaxes", {0, 2, 0, 0}}, {"reduced", {0, 3.5, 0, 0}}};
  const op::Values values = evaluate(problem, inputs);
  EXPECT_EQ(value_of(values, "scales"), Numbers({5, 5, 5, 64, 5, 64}));
  EXPECT_EQ(value_of(values, "new_history"), Numbers({0, 0, 7, 1, 1, 3.5}));
}

TEST(Fp8RecipeReference, without_steps_nothing_changes) {
  const Problem problem = problem_of({.steps = 0, .tensors = 1, .history = 2});
  const op::Values values = evaluate(problem, {{"history", {3, 4}}, {"scale", {5}}, {"amaxes", {}}});
  EXPECT_EQ(value_of(values, "new_history"), Numbers({3, 4}));
  EXPECT_EQ(value_of(values, "scales"), Numbers({5}));
}

/// The amaxes of a course whose draws are all -1, of one tensor.
Numbers amaxes_of(const char* course, std::int64_t steps, double remembered = 0) {
  const Problem problem = problem_of({.steps = steps, .tensors = 1, .history = 1, .course = course});
  return derived(problem, {{"history", {remembered}}}, "amaxes", Numbers(static_cast<std::size_t>(steps), -1));
}

TEST(Fp8RecipeCourses, levels) {
  EXPECT_EQ(amaxes_of("steady", 3), Numbers({1, 1, 1}));
  EXPECT_EQ(amaxes_of("drifting", 4), Numbers({1, 0x1p-4, 0x1p-8, 0x1p-12}));
  EXPECT_EQ(amaxes_of("spiking", 8), Numbers({1, 1, 1024, 1, 1, 1, 1, 1}));
  EXPECT_EQ(amaxes_of("vanishing", 4), Numbers({1, 0x1p-56, 0x1p-112, 0})) << "2^-168 is stored as 0";
  EXPECT_EQ(amaxes_of("restart_with_state", 2), Numbers({0x1p-10, 0x1p-10}));
  EXPECT_EQ(amaxes_of("calibration", 2, 0.5), Numbers({0.5, 0x1p-10})) << "the first step raises what is there";
}

TEST(Fp8RecipeCourses, special_amaxes_are_of_every_kind) {
  constexpr std::int64_t kSteps = 4096;
  const Problem problem = problem_of({.steps = kSteps, .tensors = 1, .history = 1, .course = "special"});
  const Numbers amaxes = derived(problem, {{"history", {0}}}, "amaxes", noise(kSteps, 1));
  const auto share = [&amaxes](auto is) {
    return static_cast<double>(std::ranges::count_if(amaxes, is)) / static_cast<double>(amaxes.size());
  };
  const auto smallest = static_cast<double>(FLT_MIN);
  EXPECT_NEAR(share([](double a) { return a == 0; }), 4.0 / 16, 0.03);
  EXPECT_NEAR(share([=](double a) { return a > 0 && a < smallest; }), 1.0 / 16, 0.02);
  EXPECT_NEAR(share([](double a) { return std::isinf(a); }), 1.0 / 16, 0.02);
  EXPECT_NEAR(share([](double a) { return std::isnan(a); }), 1.0 / 16, 0.02);
  EXPECT_NEAR(share([](double a) { return a == static_cast<double>(FLT_MAX); }), 1.0 / 16, 0.02);
  EXPECT_NEAR(share([=](double a) { return a >= smallest && a < 0x1p-120; }), 1.0 / 16, 0.02);
  for (const double amax : amaxes) {
    EXPECT_TRUE(std::isnan(amax) || amax == static_cast<double>(static_cast<float>(amax))) << amax;
  }
}

TEST(Fp8RecipeCourses, a_restart_finds_what_an_earlier_series_left) {
  const Problem with = problem_of({.steps = 1, .tensors = 1, .history = 3, .course = "restart_with_state"});
  const Numbers history = derived(with, {}, "history", {5, -2, 1});
  EXPECT_EQ(history, Numbers({0, 0x1p-9, 0x1p-10}));
  EXPECT_EQ(derived(with, {{"history", history}}, "scale", {0}), Numbers({448 * 0x1p9}));
  const Problem without = problem_of({.steps = 1, .tensors = 1, .history = 3, .course = "restart_without_state"});
  EXPECT_EQ(derived(without, {}, "history", {5, -2, 1}), Numbers({0, 0, 0}));
  EXPECT_EQ(derived(without, {{"history", {0, 0, 0}}}, "scale", {0}), Numbers({1}));
}

TEST(Fp8RecipeCourses, calibrating_measures_every_second_tensor_and_sets_no_scale) {
  const Problem problem = problem_of({.steps = 1, .tensors = 2, .history = 2, .course = "calibration"});
  const Numbers history = derived(problem, {}, "history", {1, 1, 1, 1});
  EXPECT_EQ(history, Numbers({0x1p-10, 0, 0, 0}));
  EXPECT_EQ(derived(problem, {{"history", history}}, "scale", {0, 0}), Numbers({1, 1}));
}

TEST(Fp8RecipeCourses, the_reduced_amax_is_the_larger_of_two_ranks) {
  op::Fp8RecipeParams p{.steps = 2, .tensors = 1, .history = 1, .kernel = "after_reduction"};
  const Inputs inputs = {{"history", {0}}, {"amaxes", {1, 2}}};
  EXPECT_EQ(derived(problem_of(p), inputs, "reduced", {-3, 0.5}), Numbers({1, 2}));
  p.second_rank = true;
  EXPECT_EQ(derived(problem_of(p), inputs, "reduced", {-3, 0.5}), Numbers({3, 2}));
}

}  // namespace
}  // namespace numcheck::reference
