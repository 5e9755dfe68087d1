// The distributions that show lost products: a 1 in each sum, and signs only.
#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "data/distribution.hpp"

namespace numcheck {
namespace {

constexpr core::StreamId kStream{77, 3, 4};

std::vector<double> one_hot(std::uint64_t matrices, const data::Geometry& geometry) {
  std::vector<double> values(matrices * geometry.rows * geometry.cols, -77);
  data::generate(data::make_distribution("one_hot"), kStream, 0, values, geometry);
  return values;
}

/// The index of the only 1 of each sum.
std::vector<std::uint64_t> hot_indices(std::uint64_t matrices, const data::Geometry& g) {
  const std::vector<double> values = one_hot(matrices, g);
  const std::uint64_t lines = g.reduced_along_rows ? g.cols : g.rows;
  const std::uint64_t depth = g.reduced_along_rows ? g.rows : g.cols;
  std::vector<std::uint64_t> hot;
  for (std::uint64_t matrix = 0; matrix < matrices; ++matrix) {
    for (std::uint64_t line = 0; line < lines; ++line) {
      std::uint64_t ones = 0;
      for (std::uint64_t i = 0; i < depth; ++i) {
        const std::uint64_t row = g.reduced_along_rows ? i : line, col = g.reduced_along_rows ? line : i;
        const double value = values[(matrix * g.rows + row) * g.cols + col];
        EXPECT_TRUE(value == 0 || value == 1);
        if (value == 1) {
          ++ones;
          hot.push_back(i);
        }
      }
      EXPECT_EQ(ones, 1U);
    }
  }
  return hot;
}

TEST(OneHot, starts_at_the_end_and_is_spread_over_the_sum) {
  const std::vector<std::uint64_t> wanted = {99, 0, 98, 50, 97, 25, 96, 75};
  EXPECT_EQ(hot_indices(1, {.cols = 100, .rows = 8}), wanted);
  EXPECT_EQ(hot_indices(1, {.cols = 8, .rows = 100, .reduced_along_rows = true}), wanted);
}

TEST(OneHot, further_matrices_of_a_batch_go_on) {
  const auto all = hot_indices(1, {.cols = 100, .rows = 24});
  EXPECT_EQ(hot_indices(3, {.cols = 100, .rows = 8}), all);
  EXPECT_EQ(hot_indices(3, {.cols = 8, .rows = 100, .reduced_along_rows = true}), all);
}

TEST(OneHot, short_sums_are_covered_completely) {
  for (const std::uint64_t depth : {1U, 2U, 7U, 33U}) {
    const auto hot = hot_indices(1, {.cols = depth, .rows = 2 * depth});
    EXPECT_EQ(std::set(hot.begin(), hot.end()).size(), depth);
  }
}

TEST(OneHot, any_range_has_the_same_values) {
  const data::Geometry geometry{.cols = 37, .rows = 50};
  const std::vector<double> whole = one_hot(2, geometry);
  std::vector<double> parts(whole.size());
  for (std::size_t begin = 0; begin < parts.size(); begin += 101) {
    const std::size_t count = std::min<std::size_t>(101, parts.size() - begin);
    data::generate(data::make_distribution("one_hot"), kStream, begin, std::span(parts).subspan(begin, count),
                   geometry);
  }
  EXPECT_EQ(parts, whole);
}

TEST(OneHot, an_enormous_row_has_its_one_at_the_end) {
  std::vector<double> values(4);
  data::generate(data::make_distribution("one_hot"), kStream, data::kOneRow - 4, values, {});
  EXPECT_EQ(values, (std::vector<double>{0, 0, 0, 1}));
}

TEST(Signs, are_balanced_ones) {
  std::vector<double> values(10'000);
  data::generate(data::make_distribution("signs"), kStream, 0, values);
  double sum = 0;
  for (const double value : values) {
    ASSERT_EQ(std::abs(value), 1);
    sum += value;
  }
  EXPECT_LT(std::abs(sum), 500);
  EXPECT_EQ(data::pattern_of(data::make_distribution("signs"), core::Dtype::bf16).order, data::Order::random);
  EXPECT_EQ(data::pattern_of(data::make_distribution("one_hot"), core::Dtype::bf16).order, data::Order::structured);
}

}  // namespace
}  // namespace numcheck
