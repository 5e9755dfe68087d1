// Rows, columns, tiles and matrices with larger errors than the others.
#include "metric/groups.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "problem.hpp"

namespace numcheck::metric {
namespace {

using core::Dtype;

constexpr Shape kShape{.batch = 3, .rows = 150, .cols = 200, .pad = 3, .offset = 1};

/// What an excess of 1 in the units of the limit is.
double allowed(const Group& group) {
  constexpr double kLogOfChance = 20;
  return group.unit * group.copies * kLogOfChance;
}

using Chosen = std::function<bool(std::int64_t matrix, std::int64_t row, std::int64_t column)>;

/// Scales the chosen outputs.
Problem scaled(Dtype dtype, double noise, double factor, const Chosen& chosen) {
  Problem p = make_problem(dtype, kShape, noise, 3);
  for (std::int64_t i = 0; i < p.port.elements(); ++i) {
    const std::int64_t row = i / kShape.cols;
    if (chosen(row / kShape.rows, row % kShape.rows, i % kShape.cols)) {
      p.set_got(i, p.expected[static_cast<std::size_t>(i)] * factor);
    }
  }
  return p;
}

bool none(std::int64_t /*matrix*/, std::int64_t /*row*/, std::int64_t /*column*/) {
  return false;
}

TEST(Groups, of_predicted_errors_exceed_nothing) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16, Dtype::fp8_e4m3, Dtype::fp8_e5m2}) {
    for (const double noise : {1e-6, 1e-4, 1e-2}) {
      const Groups groups = compare(scaled(dtype, noise, 1, none).input()).groups;
      EXPECT_EQ(groups.row.count, 450);
      EXPECT_EQ(groups.column.count, 600);
      EXPECT_EQ(groups.tile.count, 3 * 3 * 4);
      EXPECT_EQ(groups.matrix.count, 3);
      for (const Group* group : {&groups.row, &groups.column, &groups.tile, &groups.matrix}) {
        EXPECT_LE(group->excess, allowed(*group)) << core::dtype_info(dtype).name << ' ' << noise;
      }
    }
  }
}

TEST(Groups, name_the_one_that_is_wrong) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp8_e4m3}) {
    const double noise = dtype == Dtype::fp32 ? 1e-5 : 1e-4;
    const double factor = dtype == Dtype::fp32 ? 1 + 5e-5 : dtype == Dtype::bf16 ? 1 + 1e-3 : 1 + 3e-3;
    const Groups row =
        compare(scaled(dtype, noise, factor, [](auto m, auto r, auto) { return m == 1 && r == 149; }).input()).groups;
    EXPECT_EQ(row.row.index, 299);
    EXPECT_EQ(row.row.elements, 200);
    EXPECT_GT(row.row.excess, allowed(row.row)) << core::dtype_info(dtype).name;
    const Groups column =
        compare(scaled(dtype, noise, factor, [](auto m, auto, auto c) { return m == 2 && c == 7; }).input()).groups;
    EXPECT_EQ(column.column.index, 407);
    EXPECT_EQ(column.column.elements, 150);
    EXPECT_GT(column.column.excess, allowed(column.column));
    const Groups tile = compare(scaled(dtype, noise, factor,
                                       [](auto m, auto r, auto c) { return m == 1 && r >= 128 && c >= 64 && c < 128; })
                                    .input())
                            .groups;
    EXPECT_EQ(tile.tile.index, 12 + 8 + 1);
    EXPECT_EQ(tile.tile.elements, 22 * 64);
    EXPECT_GT(tile.tile.excess, allowed(tile.tile));
    const Groups matrix =
        compare(scaled(dtype, noise, factor, [](auto m, auto, auto) { return m == 2; }).input()).groups;
    EXPECT_EQ(matrix.matrix.index, 2);
    EXPECT_GT(matrix.matrix.excess, allowed(matrix.matrix));
  }
}

TEST(Groups, add_up_squares_as_defined) {
  Problem p = make_problem(Dtype::fp32, {1, 8, 70}, 1e-4, 5);
  const Statistics s = compare(p.input());
  const double sum = s.z_rms * s.z_rms * static_cast<double>(s.elements);
  const double expected = 2 * std::log(2) * 4 * static_cast<double>(s.elements);  // a s^2 / c with a mean square < 1
  EXPECT_LT(s.z_rms, 1);
  EXPECT_NEAR(s.groups.matrix.excess, sum - expected, 1e-5 * expected);
  EXPECT_EQ(s.groups.matrix.unit, 16);
}

TEST(Groups, larger_errors_everywhere_are_no_difference) {
  Problem p = scaled(Dtype::fp32, 1e-5, 1, none);
  p.model.var_second /= 400;
  p.model.var_value /= 400;
  p.model.var_coherent /= 400;
  const Statistics s = compare(p.input());
  EXPECT_GT(s.z_rms, 10);
  EXPECT_GT(s.groups.row.unit, 1600);
  EXPECT_LE(s.groups.row.excess, allowed(s.groups.row));
}

TEST(Groups, one_boundary_that_is_crossed_from_afar_shows) {
  Problem p = make_problem(Dtype::bf16, {1, 64, 64}, 1e-5, 5);
  const Statistics clean = compare(p.input());
  EXPECT_LE(clean.groups.row.excess, allowed(clean.groups.row));
  const double y = p.expected[64 * 5 + 3];
  p.set_got(64 * 5 + 3, y + 0.7 * core::ulp(y, Dtype::bf16));
  const Statistics flipped = compare(p.input());
  EXPECT_EQ(flipped.groups.row.index, 5);
}

TEST(Groups, elements_that_share_an_error_count_as_one) {
  Problem p = make_problem(Dtype::fp32, {1, 100, 50}, 1e-5, 5);
  EXPECT_EQ(compare(p.input()).groups.row.copies, 1);
  p.model.columns_agree = true;
  EXPECT_EQ(compare(p.input()).groups.row.copies, 50);
  EXPECT_EQ(compare(p.input()).groups.column.copies, 1);
  EXPECT_EQ(compare(p.input()).groups.tile.copies, 50);
  p.model.columns_agree = false;
  p.model.lines_share = true;
  EXPECT_EQ(compare(p.input()).groups.column.copies, 100);
  EXPECT_EQ(compare(p.input()).groups.tile.copies, 64);
  p.model.slope_copies = 1e9;
  EXPECT_EQ(compare(p.input()).groups.tile.copies, 64 * 50);
}

TEST(Groups, nothing_is_known_of_samples_few_rows_and_exact_models) {
  Problem exact = make_problem(Dtype::fp32, {1, 20, 20}, 0, 5);
  exact.model.exact = true;
  Problem one = make_problem(Dtype::fp32, {1, 20, 20}, 1e-5, 5);
  one.model.one_error = true;
  Problem sampled = make_problem(Dtype::fp32, {1, 20, 20}, 1e-5, 5);
  for (std::int64_t i = 0; i < 400; ++i) {
    sampled.sample.indices.push_back(i);
  }
  for (const Problem& p : {exact, one, sampled, make_problem(Dtype::fp32, {1, 7, 400}, 1e-5, 5)}) {
    EXPECT_EQ(compare(p.input()).groups.row.unit, 0);
  }
}

// One query of 16 heads in 3 sequences: rows of heads are 48 independent ones, of which slopes have a standard error.
TEST(Groups, of_few_rows_are_those_of_heads) {
  constexpr Shape kDecoding{.batch = 3, .rows = 1, .cols = 1024, .pad = 0, .offset = 0};
  Problem p = make_problem(Dtype::fp32, kDecoding, 1e-6, 3);
  p.model.columns_agree = true;
  const Statistics whole = compare(p.input());
  EXPECT_TRUE(std::isinf(whole.slope_se));
  EXPECT_EQ(whole.copies, 1024);
  EXPECT_EQ(whole.groups.row.count, 0);

  p.port.heads = 16;
  const Statistics parted = compare(p.input());
  EXPECT_TRUE(std::isfinite(parted.slope_se));
  EXPECT_EQ(parted.copies, 64);
  EXPECT_EQ(parted.groups.row.count, 48);
  EXPECT_TRUE(parted.groups.rows_of_heads);
  EXPECT_NEAR(parted.slope, whole.slope, 1e-12);
}

TEST(Groups, of_many_rows_are_rows_whatever_their_heads) {
  Problem p = make_problem(Dtype::fp32, kShape, 1e-6, 3);
  p.port.heads = 8;
  const Groups groups = compare(p.input()).groups;
  EXPECT_EQ(groups.row.count, 450);
  EXPECT_FALSE(groups.rows_of_heads);
}

}  // namespace
}  // namespace numcheck::metric
