#include "metric/repeats.hpp"

#include <cstddef>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace numcheck::metric {
namespace {

TEST(Repeats, numbers_that_all_differ_have_no_copies) {
  std::vector<double> values(3000);
  std::mt19937_64 engine(1);
  for (double& y : values) {
    y = std::normal_distribution<double>()(engine);
  }
  EXPECT_EQ(repeats_of(values), 1);
  EXPECT_EQ(repeats_of({}), 1);
  EXPECT_EQ(repeats_of(std::vector<double>{0, 0, 0}), 1) << "zeros are not rounded";
}

TEST(Repeats, equal_rows_count_as_often_as_there_are_rows) {
  std::vector<double> row(256);
  std::mt19937_64 engine(2);
  for (double& y : row) {
    y = std::normal_distribution<double>()(engine);
  }
  std::vector<double> values;
  for (int r = 0; r < 512; ++r) {
    for (const double y : row) {
      values.push_back(r % 2 == 0 ? y : -y);  // is rounded alike
    }
  }
  EXPECT_NEAR(repeats_of(values), 512, 25) << "estimated from 4096 of them";
  values.resize(8 * row.size());
  EXPECT_NEAR(repeats_of(values), 8, 1e-9) << "all of them";
}

TEST(Repeats, last_bits_that_the_order_of_a_sum_decides_do_not_matter) {
  EXPECT_EQ(repeats_of(std::vector<double>{1.5, 1.5 + 0x1p-50}), 2);
}

/// 64 rows of 32 BF16 numbers; those of a row, or of a column, are `apart` ulps from one another at most.
std::vector<double> lines(bool are_rows, double apart) {
  constexpr double kUlp = 0x1p-7;
  std::vector<double> values;
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < 32; ++column) {
      const int line = are_rows ? row : column, within = are_rows ? column : row;
      values.push_back(1.1 + kUlp * (0.7 * line + apart * (within % 8) / 7));
    }
  }
  return values;
}

TEST(Repeats, elements_of_a_line_are_rounded_together) {
  constexpr Lines kRows{.length = 32, .stride = 1}, kColumns{.length = 64, .stride = 32};
  EXPECT_NEAR(rounded_together(lines(true, 0), kRows, core::Dtype::bf16, 1), 32, 1e-6);
  EXPECT_NEAR(rounded_together(lines(false, 0), kColumns, core::Dtype::bf16, 1), 64, 1e-6);
  EXPECT_LT(rounded_together(lines(false, 0), kRows, core::Dtype::bf16, 1), 1.5) << "0.7 ulps apart";
  EXPECT_NEAR(rounded_together(lines(true, 0.5), kRows, core::Dtype::bf16, 1), 1 + 31 * (1 - 0.375), 1)
      << "0.19 ulps apart on average";
  EXPECT_LT(rounded_together(lines(true, 100), kRows, core::Dtype::bf16, 1), 6) << "only the same numbers";
  EXPECT_NEAR(rounded_together(lines(true, 0.5), kRows, core::Dtype::fp16, 1), 32.0 / 8, 1) << "4 ulps of FP16";
  EXPECT_NEAR(rounded_together(lines(true, 0), kRows, core::Dtype::bf16, -3), 32, 1e-6);
  EXPECT_EQ(rounded_together({}, kRows, core::Dtype::bf16, 1), 1);
  EXPECT_EQ(rounded_together(std::vector<double>(32), kRows, core::Dtype::bf16, 1), 1) << "zeros are not rounded";
}

}  // namespace
}  // namespace numcheck::metric
