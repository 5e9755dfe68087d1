// Tests how much of attention's outputs may be lost.
#include "tolerance/attention_lost.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "op/attention_params.hpp"

namespace numcheck::tolerance {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

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
  EXPECT_DOUBLE_EQ(signal_of(1, 1, 0.5, core::Dtype::fp32), 1 / (0.25 + 0x1p-46 / 12));
  EXPECT_DOUBLE_EQ(signal_of(1, 0.25, 0.5, core::Dtype::fp32), 1 / (0.0625 + 0x1p-46 / 12))
      << "no error exceeds its bound";
  EXPECT_DOUBLE_EQ(signal_of(1, 1, 0, core::Dtype::bf16), 12 * 0x1p14);
  EXPECT_EQ(signal_of(0, 1, 0, core::Dtype::bf16), 0);
}

TEST(LostRows, elements_that_are_not_judged_do_not_count) {
  constexpr auto kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(signal_of(1, std::numeric_limits<float>::max(), kInf, core::Dtype::bf16), 0);
  EXPECT_EQ(signal_of(1, kNan, kNan, core::Dtype::bf16), 0);
  EXPECT_EQ(signal_of(1, 1, kNan, core::Dtype::bf16), 0);
  EXPECT_EQ(signal_of(static_cast<double>(kInf), 1, 1, core::Dtype::bf16), 0);
  EXPECT_EQ(signal_of(static_cast<double>(kNan), 1, 1, core::Dtype::bf16), 0);
}

}  // namespace
}  // namespace numcheck::tolerance
