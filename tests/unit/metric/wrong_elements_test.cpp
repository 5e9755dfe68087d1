// Which elements are wrong by themselves, and the description of where they lie.
#include "metric/wrong_elements.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "problem.hpp"

namespace numcheck::metric {
namespace {

using core::Dtype;

op::Port port_of(std::int64_t batch, std::int64_t rows, std::int64_t cols) {
  op::Port port;
  port.batch = batch;
  port.rows = rows;
  port.cols = cols;
  return port;
}

/// Locates the elements for which `is_wrong(matrix, row, column)`.
template <class IsWrong>
WrongElements located(std::int64_t batch, std::int64_t rows, std::int64_t cols, const IsWrong& is_wrong) {
  std::vector<std::uint8_t> wrong;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) {
        wrong.push_back(is_wrong(b, r, c) ? 1 : 0);
      }
    }
  }
  return locate(wrong, port_of(batch, rows, cols), {});
}

std::vector<std::pair<std::int64_t, std::int64_t>> ranges_of(const WrongLines& lines) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const WrongLines::Range& range : lines.ranges) {
    ranges.emplace_back(range.first, range.last);
  }
  return ranges;
}

using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

TEST(Locate, two_rows) {
  const WrongElements w = located(1, 64, 64, [](auto, auto r, auto) { return r == 0 || r == 32; });
  EXPECT_EQ(w.count, 128U);
  EXPECT_EQ(w.of, 4096U);
  EXPECT_EQ(w.rows.touched, 2);
  EXPECT_EQ(ranges_of(w.rows), (Ranges{{0, 0}, {32, 32}}));
  EXPECT_EQ(w.rows.step, 0) << "two ranges are no pattern";
  EXPECT_EQ(w.columns.touched, 64);
  EXPECT_FALSE(w.tiles.has_value()) << "a row does not fill a tile";
}

TEST(Locate, rows_at_one_distance) {
  const auto every = located(1, 256, 8, [](auto, auto r, auto) { return r % 16 == 3 || r % 16 == 4; });
  EXPECT_EQ(every.rows.step, 16);
  EXPECT_EQ(every.rows.range_count, 16);
  EXPECT_EQ(every.rows.ranges.size(), kRangesKept);
  const auto uneven = located(1, 256, 8, [](auto, auto r, auto) { return r % 16 == 3 || r == 4; });
  EXPECT_EQ(uneven.rows.step, 0) << "one range is longer";
}

TEST(Locate, tiles_of_the_largest_size_that_fits) {
  const auto one = located(1, 256, 192, [](auto, auto r, auto c) { return r / 64 == 1 && c / 64 == 2; });
  ASSERT_TRUE(one.tiles.has_value());
  EXPECT_EQ(one.tiles->size, 64);
  EXPECT_EQ(one.tiles->touched, 1);
  EXPECT_EQ(one.tiles->of, 12);
  EXPECT_EQ(one.tiles->first, (std::array<std::int64_t, 3>{0, 64, 128}));
  const auto board = located(2, 64, 64, [](auto b, auto r, auto c) { return b == 1 && (r / 16 + c / 16) % 2 == 1; });
  ASSERT_TRUE(board.tiles.has_value());
  EXPECT_EQ(board.tiles->size, 16);
  EXPECT_EQ(board.tiles->touched, 8);
  EXPECT_EQ(board.tiles->first, (std::array<std::int64_t, 3>{1, 0, 16}));
  EXPECT_EQ(ranges_of(board.matrices), (Ranges{{1, 1}}));
}

TEST(Locate, a_tile_may_have_some_right_elements_and_scattered_ones_are_no_tiles) {
  const auto tile = located(1, 64, 64, [](auto, auto r, auto c) { return r < 32 && c < 32 && (r * c) % 16 != 5; });
  ASSERT_TRUE(tile.tiles.has_value());
  EXPECT_EQ(tile.tiles->size, 32);
  EXPECT_FALSE(located(1, 64, 64, [](auto, auto r, auto c) { return (r * 7 + c * 13) % 64 == 0; }).tiles.has_value());
}

TEST(Locate, of_none_and_of_all) {
  EXPECT_EQ(located(1, 4, 4, [](auto, auto, auto) { return false; }).count, 0U);
  const auto all = located(3, 16, 16, [](auto, auto, auto) { return true; });
  EXPECT_EQ(all.count, all.of);
  EXPECT_EQ(all.matrices.touched, 3);
  EXPECT_FALSE(all.tiles.has_value());
  EXPECT_EQ(locate({}, port_of(1, 0, 8), {}).of, 0U);
}

TEST(Locate, positions_of_a_sample_are_those_of_its_indices) {
  const op::Sample sample{{5, 17, 40, 63}};
  const std::vector<std::uint8_t> wrong = {0, 1, 0, 1};
  const WrongElements w = locate(wrong, port_of(1, 8, 8), sample);
  EXPECT_EQ(w.count, 2U);
  EXPECT_EQ(w.of, 4U);
  EXPECT_EQ(ranges_of(w.rows), (Ranges{{2, 2}, {7, 7}}));
  EXPECT_EQ(ranges_of(w.columns), (Ranges{{1, 1}, {7, 7}}));
  EXPECT_FALSE(w.tiles.has_value());
}

class MarkWrong : public ::testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(Formats, MarkWrong, ::testing::Values(Dtype::fp32, Dtype::bf16, Dtype::fp16, Dtype::fp8_e4m3));

TEST_P(MarkWrong, agrees_with_the_statistics_about_whether_there_are_any) {
  for (const double noise : {0.0, 1e-7, 1e-5, 1e-3, 1e-1}) {
    const Problem p = make_problem(GetParam(), {2, 33, 65, 3, 1}, noise, 7);
    const Statistics s = compare(p.input());
    const auto marked = mark_wrong(p.input(), {});
    ASSERT_EQ(marked.size(), s.elements);
    const auto count = static_cast<std::uint64_t>(std::ranges::count(marked, 1));
    const bool over = s.max_over_bound > 1 || s.max_over_half_ulp > 1 || s.z_max > 13.9 * p.model.kappa;
    EXPECT_EQ(count > 0, over) << noise;
    const WrongElements w = find_wrong(p.input(), s, {});
    EXPECT_EQ(w.count, count);
    EXPECT_EQ(w.of, s.elements);
  }
}

TEST_P(MarkWrong, finds_the_very_elements) {
  Problem p = make_problem(GetParam(), {1, 40, 600, 2, 0}, 0, 3);
  const std::vector<std::int64_t> wrong = {0, 511, 512, 5000, 40 * 600 - 1};
  for (const std::int64_t index : wrong) {
    p.set_got(index, 2 * std::fabs(p.expected[static_cast<std::size_t>(index)]) + 1);
  }
  p.set_got(7000, std::numeric_limits<double>::quiet_NaN());
  const auto marked = mark_wrong(p.input(), {});
  std::vector<std::int64_t> found;
  for (std::size_t i = 0; i < marked.size(); ++i) {
    if (marked[i] != 0) {
      found.push_back(static_cast<std::int64_t>(i));
    }
  }
  EXPECT_EQ(found, (std::vector<std::int64_t>{0, 511, 512, 5000, 7000, 40 * 600 - 1}));
}

TEST(MarkWrong, of_an_exact_model_are_elements_with_other_bits) {
  Problem p = make_problem(Dtype::fp32, {1, 8, 8, 0, 0}, 0, 5);
  p.model.exact = true;
  EXPECT_EQ(find_wrong(p.input(), compare(p.input()), {}).count, 0U);
  p.set_got(9, std::nextafter(static_cast<float>(p.got_at(9)), 1e30F));
  EXPECT_EQ(find_wrong(p.input(), compare(p.input()), {}).count, 1U);
}

TEST(MarkWrong, counts_what_the_plan_does_not_allow) {
  Problem p = make_problem(Dtype::bf16, {1, 16, 16, 0, 0}, 0, 5);
  const Statistics s = compare(p.input());
  ASSERT_LE(s.max_over_bound, 1);
  const WrongElements w = find_wrong(p.input(), s, 0.25);
  EXPECT_GT(w.count, 0U) << "half of all roundings are off by more than a quarter of an ulp";
  EXPECT_LT(w.count, w.of);
}

}  // namespace
}  // namespace numcheck::metric
