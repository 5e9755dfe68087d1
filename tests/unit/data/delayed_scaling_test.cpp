// Delayed scaling step by step: which amax counts, what becomes of the history, and every amax that has no quotient.
#include "data/delayed_scaling.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace numcheck::data {
namespace {

using History = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();
const float kNan = std::nanf("");

const DelayedScaling kMost;
const DelayedScaling kRecent{.choice = AmaxChoice::most_recent};
const DelayedScaling kReduced{.idle = IdleTensor::left_alone};

/// The scale after a step with that amax, of a tensor whose scale was `before`.
float scale_after(const DelayedScaling& rules, float amax, float before = 3) {
  ScalingState state({0, 0, 0}, before);
  state.record(amax);
  state.update(rules);
  return state.scale();
}

TEST(DelayedScaling, the_target_is_the_largest_number_over_two_to_the_margin) {
  EXPECT_EQ(DelayedScaling{}.target(), 448.0F);
  EXPECT_EQ((DelayedScaling{.margin = 3}).target(), 56.0F);
  EXPECT_EQ((DelayedScaling{.margin = -2}).target(), 1792.0F);
  EXPECT_EQ((DelayedScaling{.format = core::Dtype::fp8_e5m2, .margin = 1}).target(), 28672.0F);
}

TEST(DelayedScaling, the_target_of_extreme_margins_is_rounded_as_two_fp32_factors_are) {
  EXPECT_EQ((DelayedScaling{.margin = 149}).target(), 448 * 0x1p-149F);
  EXPECT_EQ((DelayedScaling{.margin = 150}).target(), 0.0F) << "2^-150 lies halfway and goes to the even number";
  EXPECT_EQ((DelayedScaling{.margin = -119}).target(), 448 * 0x1p119F);
  EXPECT_EQ((DelayedScaling{.margin = -120}).target(), kInfinity);
}

TEST(DelayedScaling, the_quotient_is_rounded_once) {
  EXPECT_EQ(scale_after(kMost, 3), static_cast<float>(448.0 / 3));
  EXPECT_EQ(scale_after(kMost, 0.1F), static_cast<float>(448.0 / static_cast<double>(0.1F)));
  EXPECT_EQ(scale_after({.format = core::Dtype::fp8_e5m2}, 7), static_cast<float>(57344.0 / 7));
  EXPECT_EQ(scale_after(kMost, kLargest), static_cast<float>(448.0 / static_cast<double>(kLargest)));
}

TEST(DelayedScaling, an_amax_without_a_quotient_keeps_the_scale) {
  for (const DelayedScaling& rules : {kMost, kRecent, kReduced}) {
    for (const float amax : {0.0F, kInfinity, kNan}) {
      EXPECT_EQ(scale_after(rules, amax), 3.0F) << amax;
    }
  }
}

TEST(DelayedScaling, a_scale_that_overflows_is_the_largest_number) {
  EXPECT_EQ(scale_after(kMost, std::numeric_limits<float>::denorm_min()), kLargest);
  EXPECT_EQ(scale_after(kMost, 0x1p-120F), kLargest);
  EXPECT_LT(scale_after(kMost, 0x1p-119F), kLargest);
  EXPECT_EQ(scale_after({.margin = -130}, 1), kLargest) << "the target is infinite itself";
  EXPECT_EQ(scale_after(kMost, 0, kInfinity), kLargest) << "an infinite one is not kept";
  EXPECT_EQ(scale_after({.margin = 155}, 1), 0.0F) << "the target is 0";
}

TEST(DelayedScaling, the_oldest_amax_counts_once_more_and_is_forgotten) {
  ScalingState state({0, 8, 2, 1}, 1);  // 8 is the oldest
  state.record(4);
  state.update(kMost);
  EXPECT_EQ(state.scale(), 448.0F / 8);
  EXPECT_EQ(state.history(), History({0, 2, 1, 4}));
  state.record(1);
  state.update(kMost);
  EXPECT_EQ(state.scale(), 448.0F / 4);
  EXPECT_EQ(state.history(), History({0, 1, 4, 1}));
}

TEST(DelayedScaling, most_recent_looks_at_nothing_else) {
  ScalingState state({0, 8, 2, 1}, 1);
  state.record(4);
  state.update(kRecent);
  EXPECT_EQ(state.scale(), 448.0F / 4);
  EXPECT_EQ(state.history(), History({0, 2, 1, 4})) << "the roll is the same";
}

TEST(DelayedScaling, a_history_of_one_is_only_cleared) {
  for (const DelayedScaling& rules : {kMost, kRecent, kReduced}) {
    ScalingState state({0}, 1);
    state.record(4);
    state.update(rules);
    EXPECT_EQ(state.scale(), 448.0F / 4);
    EXPECT_EQ(state.history(), History({0}));
  }
}

TEST(DelayedScaling, nan_is_dropped_but_infinity_in_the_window_keeps_the_scale) {
  ScalingState state({0, kNan, 2, 0}, 5);
  state.record(kNan);
  state.update(kMost);
  EXPECT_EQ(state.scale(), 448.0F / 2);
  EXPECT_TRUE(std::isnan(state.history().back())) << "it is remembered";
  state = ScalingState({0, kInfinity, 2, 0}, 5);
  state.record(1);
  state.update(kMost);
  EXPECT_EQ(state.scale(), 5.0F);
}

TEST(DelayedScaling, a_tensor_without_an_amax_is_rolled_or_left_alone) {
  ScalingState rolled({0, 8, 2, 1}, 5), left(rolled);
  rolled.update(kMost);
  EXPECT_EQ(rolled.scale(), 448.0F / 8) << "of what it remembers";
  EXPECT_EQ(rolled.history(), History({0, 2, 1, 0}));
  left.update(kReduced, 0.0F);
  EXPECT_EQ(left.scale(), 5.0F);
  EXPECT_EQ(left.history(), History({0, 8, 2, 1}));
}

TEST(DelayedScaling, the_reduced_amax_replaces_that_of_this_rank_unless_it_is_0) {
  ScalingState state({0, 1, 1, 1}, 5);
  state.record(2);
  state.update(kReduced, 7.0F);
  EXPECT_EQ(state.scale(), 64.0F);
  EXPECT_EQ(state.history(), History({0, 1, 1, 7}));
  state.record(14);
  state.update(kReduced, 0.0F);
  EXPECT_EQ(state.scale(), 32.0F);
  state.record(0);
  state.update(kReduced, kNan);
  EXPECT_EQ(state.scale(), 32.0F);
  EXPECT_TRUE(std::isnan(state.history().back())) << "NaN is not 0";
}

TEST(DelayedScaling, the_rules_of_a_case_are_its_parameters) {
  const DelayedScaling rules =
      delayed_scaling_of({.algorithm = "most_recent", .margin = 4, .format = "fp8_e5m2", .kernel = "after_reduction"});
  EXPECT_EQ(rules.format, core::Dtype::fp8_e5m2);
  EXPECT_EQ(rules.choice, AmaxChoice::most_recent);
  EXPECT_EQ(rules.margin, 4);
  EXPECT_EQ(rules.idle, IdleTensor::left_alone);
  EXPECT_EQ(delayed_scaling_of({}).idle, IdleTensor::rolled);
}

}  // namespace
}  // namespace numcheck::data
