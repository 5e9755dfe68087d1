// The map of an output's errors: its cells, what they hold, and that it agrees with the statistics.
#include "metric/error_map.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "core/parallel.hpp"
#include "problem.hpp"

namespace numcheck::metric {
namespace {

using core::Dtype;

const MapCell& cell_of(const ErrorMap& map, std::int64_t row, std::int64_t column) {
  return map.cells[static_cast<std::size_t>(row / map.cell_rows * map.across + column / map.cell_cols)];
}

Problem without_error(Dtype dtype, const Shape& shape) {
  Problem p = make_problem(dtype, shape, 0, 1);
  for (std::int64_t i = 0; i < p.port.elements(); ++i) {
    p.expected[static_cast<std::size_t>(i)] = p.got_at(i);
  }
  return p;
}

double largest(const ErrorMap& map) {
  return std::ranges::max(map.cells, {}, &MapCell::over_bound).over_bound;
}

TEST(ErrorMap, has_at_most_32_cells_along_a_side_and_covers_powers_of_two) {
  const ErrorMap small = error_map(without_error(Dtype::fp32, {.rows = 5, .cols = 32}).input());
  EXPECT_EQ((std::vector{small.down, small.across, small.cell_rows, small.cell_cols}),
            (std::vector<std::int64_t>{5, 32, 1, 1}));
  const ErrorMap large = error_map(without_error(Dtype::bf16, {.batch = 3, .rows = 11, .cols = 257}).input());
  EXPECT_EQ((std::vector{large.rows, large.cols, large.down, large.across, large.cell_rows, large.cell_cols}),
            (std::vector<std::int64_t>{33, 257, 17, 17, 2, 16}));
  std::uint64_t compared = 0;
  for (const MapCell& cell : large.cells) {
    compared += cell.compared;
  }
  EXPECT_EQ(compared, 33U * 257U);
}

TEST(ErrorMap, of_nothing_is_empty) {
  EXPECT_TRUE(error_map(without_error(Dtype::fp32, {.rows = 0, .cols = 4}).input()).cells.empty());
}

TEST(ErrorMap, shows_one_wrong_element_in_its_cell_only) {
  Problem p = without_error(Dtype::fp32, {.rows = 100, .cols = 70, .pad = 3, .offset = 1});
  const std::int64_t row = 77, column = 33;
  const std::int64_t index = row * 70 + column;
  const double expected = p.expected[static_cast<std::size_t>(index)];
  p.set_got(index, expected + 1000);
  const ErrorMap map = error_map(p.input());
  for (const MapCell& cell : map.cells) {
    const bool own = &cell == &cell_of(map, row, column);
    EXPECT_EQ(cell.over_bound > 0, own);
    EXPECT_EQ(cell.mean_error > 0, own);
  }
  EXPECT_EQ(largest(map), compare(p.input()).max_over_bound);
  const MapCell& wrong = cell_of(map, row, column);
  EXPECT_NEAR(wrong.mean_error, 1000.0 / static_cast<double>(wrong.compared), 1e-3);
}

TEST(ErrorMap, agrees_with_the_largest_error_of_the_statistics_in_every_format) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16, Dtype::fp8_e4m3, Dtype::fp8_e5m2}) {
    const Problem p = make_problem(dtype, {.batch = 2, .rows = 65, .cols = 90, .pad = 1}, 1e-2, 7);
    EXPECT_NEAR(largest(error_map(p.input())) / compare(p.input()).max_over_bound, 1, 1e-12);
  }
}

TEST(ErrorMap, shows_unwritten_elements_and_wrong_nans) {
  Problem p = without_error(Dtype::fp32, {.rows = 64, .cols = 64});
  p.set_bits(10 * 64 + 20, 0xffffffff);
  p.set_got(50 * 64 + 60, std::numeric_limits<double>::quiet_NaN());
  p.expected[30 * 64 + 30] = std::numeric_limits<double>::quiet_NaN();
  const ErrorMap map = error_map(p.input());
  for (const MapCell& cell : map.cells) {
    EXPECT_EQ(cell.unwritten, &cell == &cell_of(map, 10, 20));
    EXPECT_EQ(cell.mismatch,
              &cell == &cell_of(map, 10, 20) || &cell == &cell_of(map, 50, 60) || &cell == &cell_of(map, 30, 30));
    EXPECT_TRUE(std::isfinite(cell.mean_error));
  }
}

TEST(ErrorMap, of_a_sample_knows_what_was_not_compared) {
  Problem p = without_error(Dtype::fp32, {.rows = 64, .cols = 64});
  p.sample.indices = {5, 64 * 33 + 7};
  p.expected = {p.expected[5], p.expected[64 * 33 + 7] + 100};
  p.unrounded.clear();
  p.magnitude.resize(2);
  p.deviation.resize(2);
  const ErrorMap map = error_map(p.input());
  EXPECT_EQ(std::ranges::count_if(map.cells, [](const MapCell& cell) { return cell.compared > 0; }), 2);
  EXPECT_EQ(cell_of(map, 0, 5).over_bound, 0);
  EXPECT_GT(cell_of(map, 33, 7).over_bound, 1);
  EXPECT_LT(cell_of(map, 33, 7).mean_error, 0);
}

TEST(ErrorMap, does_not_depend_on_the_number_of_threads) {
  const Problem p = make_problem(Dtype::bf16, {.rows = 300, .cols = 500}, 1e-2, 9);
  const int before = core::thread_count();
  core::set_thread_count(1);
  const ErrorMap one = error_map(p.input());
  core::set_thread_count(5);
  const ErrorMap five = error_map(p.input());
  core::set_thread_count(before);
  for (std::size_t i = 0; i < one.cells.size(); ++i) {
    EXPECT_EQ(one.cells[i].mean_error, five.cells[i].mean_error);
    EXPECT_EQ(one.cells[i].over_bound, five.cells[i].over_bound);
  }
}

TEST(Statistics, z_histogram_counts_every_finite_element_once) {
  for (const Shape& shape : {Shape{.rows = 65, .cols = 90}, Shape{.rows = 3, .cols = 7}}) {
    Problem p = make_problem(Dtype::fp32, shape, 1e-2, 7);
    p.set_got(2, std::numeric_limits<double>::quiet_NaN());
    const Statistics s = compare(p.input());
    std::uint64_t sum = 0;
    for (const std::uint64_t count : s.z_histogram) {
      sum += count;
    }
    EXPECT_EQ(sum, s.finite);
    EXPECT_EQ(s.z_histogram.back() > 0, s.z_max >= 8);
  }
}

TEST(Statistics, z_histogram_of_exact_results_is_in_the_first_bin) {
  const Statistics s = compare(without_error(Dtype::fp32, {.rows = 5, .cols = 13}).input());
  EXPECT_EQ(s.z_histogram[0], 65U);
}

}  // namespace
}  // namespace numcheck::metric
