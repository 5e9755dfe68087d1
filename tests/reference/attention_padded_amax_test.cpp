// Amaxes of FP8 attention that count padding.
#include "reference/attention_padded_amax.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <gtest/gtest.h>

#include "attention_device_run.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::DeviceRun;
using About = op::Finding::About;

constexpr const char* kPadding = "queries that are padding count in the amax";

TEST(AttentionPaddedAmax, an_amax_that_counts_padding_may_be_off_by_what_rounded_weights_leave) {
  op::AttentionParams p;
  p.sq = 288;
  p.sk = 300;
  p.d = 64;
  p.mask = "padding";
  DeviceRun run(op::attention_fwd(), attention_fwd_reference(), p, "fp8_e4m3", 0.5);
  double expected = 0;
  for (const std::size_t at : run.elements("o", 0)) {
    expected = std::max(expected, std::fabs(run["o"][at]));
  }
  const auto share_at = [&](double ratio) {
    run["o_amax"] = {expected * ratio};
    return run.share("o_amax", kPadding, About::numbers);
  };
  constexpr double kStep = 0.001;
  double high = 1.5;  // the largest ratio that padding explains, over the most keys that it may have been weighed over
  while (high > 1 && share_at(high) < 1) {
    high -= kStep;
  }
  double low = high;
  while (low > 1 && share_at(low - kStep) == 1) {
    low -= kStep;
  }
  ASSERT_GT(low, 1.05) << "padding makes no difference here";
  EXPECT_NEAR(high - low, 0.04 * (low + high) / 2, 0.004);
  EXPECT_GT(share_at((low + high) / 2 * 1.01), 0.95);
  EXPECT_LT(share_at(low * 0.97), 0.95) << "less";
  EXPECT_LT(share_at(high * 1.1), 0.95) << "more than padding has";
}

TEST(AttentionPaddedAmax, an_amax_that_counts_padding_is_that_of_stored_padding_where_scores_are_too_large) {
  op::AttentionParams p;
  p.sq = 512;
  p.sk = 512;
  p.d = 64;
  p.scale = 1e6;
  p.mask = "padding";
  DeviceRun run(op::attention_fwd(), attention_fwd_reference(), p, "fp8_hybrid", 0.5);
  const double expected = run.largest_expected("o");
  const auto share_at = [&](double ratio, double padding) {
    run["o_amax"] = {expected * ratio};
    run["o"].back() = expected * padding;  // the last query is padding
    return run.share("o_amax", kPadding, About::numbers);
  };
  EXPECT_EQ(share_at(1.1, 1.12), 1) << "of the same code";
  EXPECT_EQ(share_at(1.1, 1.5), 0) << "of another one";
  EXPECT_EQ(share_at(1.1, 0.5), 0);
  EXPECT_EQ(share_at(1, 1.5), 0) << "right";
  for (double& stored : run["o"]) {
    stored = std::clamp(stored, -0.75 * expected, 0.75 * expected);
  }
  EXPECT_EQ(share_at(0.9, 0.9), 1) << "beyond what was stored but for padding, if not what is expected";
  EXPECT_EQ(share_at(0.75, 0.9), 0) << "what was stored";
}

}  // namespace
}  // namespace numcheck::reference
