// Which operands are not as large any more once they are FP8 codes.
#include "prepare/lost_sizes.hpp"

#include <cstddef>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace numcheck::prepare {
namespace {

constexpr std::int64_t kRows = 300, kCols = 40, kBatch = 2;

std::vector<double> ones() {
  return std::vector<double>(static_cast<std::size_t>(kBatch * kRows * kCols), 1.0);
}

std::size_t at(std::int64_t batch, std::int64_t row, std::int64_t column) {
  return static_cast<std::size_t>((batch * kRows + row) * kCols + column);
}

op::Operand operand(const std::vector<double>& values, double scale, core::Dtype dtype) {
  return {.port = "a",
          .data = values.data(),
          .batch = kBatch,
          .rows = kRows,
          .cols = kCols,
          .scale = scale,
          .dtype = dtype};
}

bool loses(const std::vector<double>& before, const std::vector<double>& codes, double scale = 1,
           core::Dtype dtype = core::Dtype::fp8_e4m3) {
  const std::vector<op::Operand> unrounded = {operand(before, 1, core::Dtype::fp32)};
  const std::vector<op::Operand> rounded = {operand(codes, scale, dtype)};
  return loses_size(unrounded, rounded);
}

TEST(LostSizes, codes_times_their_scale_are_as_large_as_before) {
  const std::vector<double> codes(ones().size(), 256.0);
  EXPECT_FALSE(loses(ones(), codes, 1.0 / 256));
  EXPECT_TRUE(loses(ones(), codes, 1.0 / 512));
}

TEST(LostSizes, one_row_or_column_of_any_matrix_is_enough) {
  for (const std::int64_t batch : {0, 1}) {
    std::vector<double> row = ones(), column = ones();
    for (std::int64_t c = 0; c < kCols; ++c) {
      row[at(batch, 77, c)] = 0;
    }
    for (std::int64_t r = 0; r < kRows; ++r) {
      column[at(batch, r, 13)] = 0;
    }
    for (int repeat = 0; repeat < 50; ++repeat) {  // whichever thread finds it
      ASSERT_TRUE(loses(ones(), row));
      ASSERT_TRUE(loses(ones(), column));
    }
  }
}

TEST(LostSizes, single_elements_that_become_zero_are_not) {
  std::vector<double> codes = ones();
  codes[at(1, 5, 5)] = 0;
  EXPECT_FALSE(loses(ones(), codes));
}

TEST(LostSizes, infinities_that_become_numbers_are) {
  std::vector<double> before = ones();
  before[at(0, 9, 9)] = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(loses(before, ones()));
  EXPECT_FALSE(loses(before, before));
}

TEST(LostSizes, only_fp8_saturates) {
  EXPECT_FALSE(loses(ones(), std::vector<double>(ones().size(), 0.0), 1, core::Dtype::bf16));
}

}  // namespace
}  // namespace numcheck::prepare
