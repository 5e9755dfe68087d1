// A scale that is wrong in one block of rows, or in one head, and what correct rows may leave there.
#include "metric/block_slopes.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "problem.hpp"

namespace numcheck::metric {
namespace {

using core::Dtype;

constexpr std::int64_t kHeads = 4, kWidth = 32, kRows = 256;

/// Two matrices of 256 rows, with four heads of 32 channels each; row slopes of 0.
struct HeadProblem {
  Problem problem;
  std::vector<float> row_slopes;

  explicit HeadProblem(Dtype dtype, double noise = 1e-3, std::uint64_t seed = 5)
      : problem(make_problem(dtype, {.batch = 2, .rows = kRows, .cols = kHeads * kWidth}, noise, seed)),
        row_slopes(static_cast<std::size_t>(2 * kRows * kHeads)) {
    problem.port.heads = kHeads;
  }

  [[nodiscard]] BlockSlope slope(double repeats = 1) const {
    CompareInput input = problem.input();
    input.row_slopes = row_slopes;
    return block_slope(input, make_setup(input), repeats);
  }
  /// Multiplies rows of a head.
  void scale(std::int64_t matrix, std::int64_t head, std::int64_t first, std::int64_t end, double factor) {
    for (std::int64_t row = matrix * kRows + first; row < matrix * kRows + end; ++row) {
      for (std::int64_t c = 0; c < kWidth; ++c) {
        const std::int64_t at = row * kHeads * kWidth + head * kWidth + c;
        problem.set_got(at, problem.got_at(at) * factor);
      }
    }
  }
};

bool passes(const BlockSlope& block) {
  return std::fabs(block.slope) <= block.limit();
}

TEST(BlockSlopes, correct_heads_pass) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
      const BlockSlope block = HeadProblem(dtype, 1e-3, seed).slope();
      EXPECT_TRUE(passes(block)) << block.slope << " > " << block.limit();
      EXPECT_EQ(block.count, 2 * kHeads * (kRows / kBlockRows + 1));
    }
  }
}

TEST(BlockSlopes, name_the_block_that_is_wrong) {
  HeadProblem p(Dtype::fp32);
  p.scale(1, 2, 64, 128, 1.002);
  const BlockSlope block = p.slope();
  EXPECT_FALSE(passes(block));
  EXPECT_EQ(block.matrix, 1);
  EXPECT_EQ(block.head, 2);
  EXPECT_EQ(block.first_row, 64);
  EXPECT_EQ(block.rows, 64);
  EXPECT_NEAR(block.slope, 2e-3, 3e-4);
}

TEST(BlockSlopes, name_the_head_that_is_wrong_though_no_block_of_it_shows) {
  HeadProblem p(Dtype::fp32);
  p.scale(0, 1, 0, kRows, 1.0006);
  const BlockSlope block = p.slope();
  EXPECT_FALSE(passes(block));
  EXPECT_EQ(block.head, 1);
  EXPECT_EQ(block.rows, kRows);
}

TEST(BlockSlopes, rows_may_be_off_by_what_the_model_says) {
  HeadProblem p(Dtype::fp32);
  p.scale(1, 2, 64, 128, 1.002);
  const BlockSlope strict = p.slope();
  for (std::int64_t row = 64; row < 128; ++row) {
    p.row_slopes[static_cast<std::size_t>((kRows + row) * kHeads + 2)] = 2e-3F;
  }
  EXPECT_TRUE(passes(p.slope()));
  p.row_slopes.assign(p.row_slopes.size(), 0);
  p.problem.model.slope_slack = 2e-3;
  EXPECT_TRUE(passes(p.slope()));
  EXPECT_GT(p.slope().slack, strict.slack);
}

// Rows that have one error each scatter as much as their number says.
TEST(BlockSlopes, errors_of_whole_rows_pass) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    HeadProblem p(Dtype::fp32, 1e-4, seed);
    for (std::int64_t row = 0; row < kRows; ++row) {
      const double sign = (row * 7919 + static_cast<std::int64_t>(seed)) % 13 < 6 ? 1 : -1;
      p.scale(0, 3, row, row + 1, 1 + 2e-4 * sign);
    }
    EXPECT_TRUE(passes(p.slope()));
  }
}

// p v of a single key: with p = 1/2 + 1/2048 every element is beyond a BF16 number, v / 2, by less than half an ulp, so that all
// of them are rounded in the same direction.
TEST(BlockSlopes, rounding_of_rows_of_one_key_passes_and_a_scale_of_them_does_not) {
  HeadProblem p(Dtype::bf16, 1e-4);
  const auto multiply = [&](double factor) {
    for (std::int64_t at = 0; at < 2 * kRows * kHeads * kWidth; ++at) {
      const auto index = static_cast<std::size_t>(at);
      const double v = core::round_to(p.problem.expected[index], Dtype::bf16);
      p.problem.expected[index] = v * (1 + 0x1p-10);
      p.problem.set_got(at, core::round_to(v * (1 + 0x1p-10) * factor, Dtype::bf16));
    }
  };
  multiply(1);
  EXPECT_TRUE(passes(p.slope())) << p.slope().slope << " > " << p.slope().limit();
  multiply(1.004);
  EXPECT_FALSE(passes(p.slope()));
}

TEST(BlockSlopes, rows_that_repeat_count_less) {
  HeadProblem p(Dtype::fp32);
  p.scale(1, 2, 64, 128, 1.002);
  EXPECT_FALSE(passes(p.slope(1)));
  EXPECT_TRUE(passes(p.slope(1024)));
}

TEST(BlockSlopes, nothing_is_known_without_row_slopes_and_of_exact_models) {
  HeadProblem p(Dtype::fp32);
  const CompareInput without = p.problem.input();
  EXPECT_EQ(block_slope(without, make_setup(without), 1).count, 0U);
  p.problem.model.exact = true;
  EXPECT_EQ(p.slope().count, 0U);
}

TEST(BlockSlopes, elements_that_are_not_finite_or_not_judged_are_left_out) {
  HeadProblem p(Dtype::fp32);
  const double before = p.slope().slope;
  p.problem.expected[5] = std::nan("");
  p.problem.set_got(5, std::nan(""));
  p.problem.magnitude[200] = p.problem.deviation[200] = INFINITY;
  p.problem.set_got(200, 1e30);
  EXPECT_TRUE(passes(p.slope()));
  EXPECT_NEAR(p.slope().slope, before, 1e-4);
}

// Sums of two FP16 numbers, of which every second lies between two others: a single error of the row takes all of these to one side.
TEST(BlockSlopes, values_between_two_numbers_may_all_be_rounded_to_one_side) {
  HeadProblem p(Dtype::fp16, 1e-6);
  const auto fill = [&](double factor) {
    for (std::int64_t at = 0; at < 2 * kRows * kHeads * kWidth; ++at) {
      const bool shown = at / (kHeads * kWidth) % kBlockRows == 0;  // one row of a block
      const auto index = static_cast<std::size_t>(at);
      const double stored = shown ? static_cast<double>(at % 7 - 3) * 0.25 + 1.125 : 0;
      const double half = at % 2 == 0 ? std::exp2(std::floor(std::log2(std::fabs(stored))) - 11) : 0;
      const double y = stored + std::copysign(half, stored);
      p.problem.expected[index] = shown ? y * (1 - 1e-8) : 0;
      p.problem.set_got(at, shown ? core::round_to(y * (1 + 1e-8) * factor, Dtype::fp16) : 0);
    }
  };
  fill(1);
  EXPECT_TRUE(passes(p.slope())) << p.slope().slope << " > " << p.slope().limit();
  fill(1.003);
  EXPECT_FALSE(passes(p.slope())) << p.slope().slope << " <= " << p.slope().limit();
}

}  // namespace
}  // namespace numcheck::metric
