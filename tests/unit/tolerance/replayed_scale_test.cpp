#include "tolerance/replayed_scale.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "core/rng.hpp"

namespace numcheck::tolerance {
namespace {

/// Uniform in [-1, 1).
double uniform(std::uint32_t n, std::uint32_t stream) {
  return static_cast<double>(core::philox4x32({n, 0, 0, 0}, {stream, 0})[0]) * 0x1p-31 - 1;
}

struct Made {
  std::size_t count = 512;
  core::Dtype format = core::Dtype::fp32;
  double error = 1e-5;         ///< of the sums
  double factor = 1;           ///< that all sums carry
  std::size_t others = 0;      ///< outputs whose errors are not those that are replayed
  std::uint32_t replayed = 1;  ///< whose errors are replayed; 1 are those that were made
};

std::vector<ReplayedOutput> outputs_of(const Made& made) {
  std::vector<ReplayedOutput> all;
  for (std::uint32_t n = 0; n < made.count; ++n) {
    const double y = 2 + uniform(n, 0);
    const auto sum = [&](std::uint32_t stream) {
      return core::round_to(y * (1 + made.error * uniform(n, stream)), core::Dtype::fp32);
    };
    const double stored = core::round_to(sum(n < made.others ? 7 : 1) * made.factor, made.format);
    const double half = core::ulp(stored, made.format) / 2;
    all.push_back({sum(made.replayed), y, stored - half, stored + half});
  }
  return all;
}

std::optional<Criterion> judged(const Made& made, const model::ErrorModel& model = {}) {
  return judge_scale(fit_scale(outputs_of(made)), model, "a schedule");
}

TEST(ReplayedScale, holds_for_the_arithmetic_that_ran) {
  for (const core::Dtype format : {core::Dtype::fp32, core::Dtype::fp16, core::Dtype::bf16}) {
    const Made made{.format = format, .error = format == core::Dtype::fp32 ? 1e-5 : 1e-3};
    const auto gate = judged(made);
    ASSERT_TRUE(gate.has_value());
    EXPECT_TRUE(gate->ok);
    EXPECT_EQ(gate->name, "G5 scale");
    EXPECT_EQ(gate->measured, 0);
    EXPECT_EQ(gate->source, "512 of 512 outputs have the bits of a schedule");
  }
}

TEST(ReplayedScale, sees_a_factor_far_below_the_errors) {
  for (const double factor : {1 + 1e-6, 1 - 1e-6, 1 + 3e-3}) {
    const auto gate = judged({.factor = factor});
    ASSERT_TRUE(gate.has_value()) << factor;
    EXPECT_FALSE(gate->ok) << factor;
    EXPECT_NEAR(gate->measured, std::fabs(factor - 1), 1e-7);
  }
  const auto narrow = judged({.format = core::Dtype::bf16, .error = 1e-3, .factor = 1 - 2e-4});
  ASSERT_TRUE(narrow.has_value());
  EXPECT_FALSE(narrow->ok);
  EXPECT_NEAR(narrow->measured, 2e-4, 5e-5);
  EXPECT_NE(narrow->source.find("512 with all sums multiplied by 1 - "), std::string::npos) << narrow->source;
}

TEST(ReplayedScale, says_nothing_of_another_order_of_summation) {
  EXPECT_FALSE(judged({.replayed = 2}).has_value());
  EXPECT_FALSE(judged({.factor = 1.01, .replayed = 2}).has_value());
  EXPECT_FALSE(judged({.format = core::Dtype::fp16, .error = 1e-3, .replayed = 2}).has_value());
  EXPECT_FALSE(judged({.others = 64}).has_value()) << "one output in eight is not replayed";
}

TEST(ReplayedScale, says_nothing_where_the_output_hides_the_errors) {
  EXPECT_FALSE(judged({.format = core::Dtype::bf16, .error = 1e-6}).has_value());
  EXPECT_FALSE(judged({.format = core::Dtype::bf16, .error = 1e-6, .factor = 1.001, .replayed = 2}).has_value());
  EXPECT_FALSE(judged({.count = 100}).has_value()) << "too few outputs";
  EXPECT_EQ(fit_scale({}).count, 0U);
}

// Nearly equal sums, as another order of summation makes them, which are all less by the same part.
TEST(ReplayedScale, says_nothing_of_a_few_numbers) {
  std::vector<ReplayedOutput> outputs;
  for (std::uint32_t n = 0; n < 192; ++n) {
    const double y = 13786 + uniform(n, 0), stored = core::round_to(y * 1.0255 + 6 * uniform(n, 1), core::Dtype::fp16);
    const double replayed = core::round_to(stored * (1 - 0.028), core::Dtype::fp16);
    outputs.push_back({replayed, y, stored - 4, stored + 4});
  }
  EXPECT_GT(fit_scale(outputs).scaled, 180U) << "the case shows nothing";
  EXPECT_FALSE(judge_scale(fit_scale(outputs), {}, "a schedule").has_value());
  EXPECT_FALSE(are_telling(outputs));
}

// Replaying costs time, so it is asked before.
TEST(ReplayedScale, is_not_tried_where_expected_values_explain_the_outputs) {
  const auto telling = [](const Made& made) {
    std::vector<ReplayedOutput> outputs = outputs_of(made);
    for (ReplayedOutput& output : outputs) {
      output.replayed = 0;  // not yet known
    }
    return are_telling(outputs);
  };
  EXPECT_TRUE(telling({}));
  EXPECT_TRUE(telling({.format = core::Dtype::bf16, .error = 1e-3}));
  EXPECT_FALSE(telling({.format = core::Dtype::bf16, .error = 1e-6}));
  EXPECT_FALSE(telling({.format = core::Dtype::bf16, .error = 1e-6, .factor = 1.001}));
  EXPECT_FALSE(telling({.count = 100}));
}

TEST(ReplayedScale, allows_what_the_model_says_of_factors) {
  model::ErrorModel model;
  model.slope_slack = 1e-5;
  EXPECT_TRUE(judged({.factor = 1 + 9e-6}, model)->ok);
  EXPECT_FALSE(judged({.factor = 1 + 2e-5}, model)->ok);
  model.slope_slack = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(judged({}, model).has_value());
}

// If some outputs have other errors, their truncation may be another one as well.
TEST(ReplayedScale, allows_the_drift_of_what_is_not_replayed) {
  model::ErrorModel model;
  model.slope_low = -1e-3;
  const Made made{.factor = 1 + 2e-5, .others = 16};
  const auto gate = judged(made, model);
  ASSERT_TRUE(gate.has_value());
  EXPECT_TRUE(gate->ok) << gate->limit;
  EXPECT_FALSE(judged(made)->ok);
}

TEST(ReplayedScale, does_not_count_what_has_no_factor) {
  std::vector<ReplayedOutput> outputs = outputs_of({});
  outputs[0].expected = 0;
  outputs[1].replayed = std::nan("");
  outputs[2].replayed = 0;
  EXPECT_EQ(fit_scale(outputs).count, 509U);
}

}  // namespace
}  // namespace numcheck::tolerance
