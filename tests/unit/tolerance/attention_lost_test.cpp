// Tests how much of attention's outputs may be lost.
#include "tolerance/attention_lost.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "op/attention_params.hpp"

namespace numcheck::tolerance {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

model::ModelRequest stored_as(core::Dtype output, double scale = 1) {
  model::ModelRequest request;
  request.output = output;
  request.output_scale = scale;
  return request;
}

TEST(LostRows, only_rows_as_small_as_their_errors_are_lost) {
  LostRows rows;
  EXPECT_EQ(rows.slope(), 0) << "no rows";
  rows.add(64 * 1000.0, 64);
  EXPECT_EQ(rows.slope(), 0) << "thirty times their errors";
  rows.add(64 * 36.0, 64);
  EXPECT_DOUBLE_EQ(rows.slope(), 36.0 / 1036) << "nine kappa^2 at most";
  rows.add(64 * 36.1, 64);
  EXPECT_DOUBLE_EQ(rows.slope(), 36.0 / 1072.1);
}

TEST(LostRows, an_element_counts_by_its_variance_and_rounding) {
  EXPECT_DOUBLE_EQ(signal_of(1, 1, 0.5, stored_as(core::Dtype::fp32)), 1 / (0.25 + 0x1p-46 / 12));
  EXPECT_DOUBLE_EQ(signal_of(1, 0.25, 0.5, stored_as(core::Dtype::fp32)), 1 / (0.0625 + 0x1p-46 / 12))
      << "no error exceeds its bound";
  EXPECT_DOUBLE_EQ(signal_of(1, 1, 0, stored_as(core::Dtype::bf16)), 12 * 0x1p14);
  EXPECT_EQ(signal_of(0, 1, 0, stored_as(core::Dtype::bf16)), 0);
}

TEST(LostRows, an_8_bit_element_is_rounded_as_it_is_stored_times_its_scale) {
  const double y = 1e-4, rounding = 0x1p-3 * 0x1p-3 / 12;  // 1.024 is stored in eighths
  EXPECT_NEAR(signal_of(y, 1, 0, stored_as(core::Dtype::fp8_e4m3, 10240)), 1.024 * 1.024 / rounding, 1e-9);
  EXPECT_NEAR(signal_of(y, 1, 0, stored_as(core::Dtype::fp8_e4m3, -10240)), 1.024 * 1.024 / rounding, 1e-9);
  EXPECT_LT(signal_of(y, 1, 0, stored_as(core::Dtype::fp8_e4m3)), 1) << "less than half of the smallest number";
}

TEST(LostRows, elements_that_are_not_judged_do_not_count) {
  constexpr auto kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(signal_of(1, std::numeric_limits<float>::max(), kInf, stored_as(core::Dtype::bf16)), 0);
  EXPECT_EQ(signal_of(1, kNan, kNan, stored_as(core::Dtype::bf16)), 0);
  EXPECT_EQ(signal_of(1, 1, kNan, stored_as(core::Dtype::bf16)), 0);
  EXPECT_EQ(signal_of(static_cast<double>(kInf), 1, 1, stored_as(core::Dtype::bf16)), 0);
  EXPECT_EQ(signal_of(static_cast<double>(kNan), 1, 1, stored_as(core::Dtype::bf16)), 0);
}

}  // namespace
}  // namespace numcheck::tolerance
