// The exact leg's integers: one non-zero in every block of the reduction, whatever the layout, the batch and the range.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/isa.hpp"
#include "data/distribution.hpp"

namespace numcheck::test {
namespace {

constexpr core::StreamId kStream{5, 6, 7};

std::vector<double> values_of(const data::ExactGeometry& geometry, std::uint64_t first, std::size_t count) {
  std::vector<double> values(count, -77);
  data::generate_exact(geometry, kStream, first, values);
  return values;
}

struct Shape {
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t stride;
  bool along_rows;
  std::int64_t matrices;  ///< along rows only: the reduction restarts with each
};

class Sparse : public testing::TestWithParam<Shape> {
 protected:
  [[nodiscard]] static data::ExactGeometry geometry() {
    const Shape& shape = GetParam();
    return {.plan = {.max_first = 3, .max_second = 5, .stride = shape.stride},
            .first_operand = true,
            .rows = shape.rows,
            .cols = shape.cols,
            .reduction_along_rows = shape.along_rows};
  }
  [[nodiscard]] static std::size_t elements() {
    return static_cast<std::size_t>(GetParam().rows * GetParam().cols * GetParam().matrices);
  }
};

INSTANTIATE_TEST_SUITE_P(Shapes, Sparse,
                         testing::Values(Shape{1, 1, 4, false, 1}, Shape{7, 1000, 1, false, 1},
                                         Shape{7, 1000, 2, false, 1}, Shape{64, 333, 7, false, 1},
                                         Shape{3, 5000, 600, false, 1}, Shape{5, 10, 100, false, 1},
                                         Shape{1000, 7, 3, true, 1}, Shape{100, 64, 7, true, 4},
                                         Shape{65, 300, 64, true, 3}, Shape{3, 1, 5, true, 6}));

TEST_P(Sparse, one_non_zero_in_every_block_of_every_line) {
  const Shape& shape = GetParam();
  const std::vector<double> values = values_of(geometry(), 0, elements());
  const std::int64_t lines = shape.along_rows ? shape.cols : shape.rows;
  const std::int64_t depth = shape.along_rows ? shape.rows : shape.cols;
  for (std::int64_t matrix = 0; matrix < shape.matrices; ++matrix) {
    for (std::int64_t line = 0; line < lines; ++line) {
      for (std::int64_t begin = 0; begin < depth; begin += shape.stride) {
        int found = 0;
        for (std::int64_t k = begin; k < std::min(depth, begin + shape.stride); ++k) {
          const std::int64_t row = shape.along_rows ? k : line;
          const std::int64_t col = shape.along_rows ? line : k;
          const double value = values[static_cast<std::size_t>((matrix * shape.rows + row) * shape.cols + col)];
          ASSERT_EQ(value, std::trunc(value));
          ASSERT_LE(std::fabs(value), 3);
          found += value != 0;
        }
        ASSERT_EQ(found, 1) << "matrix " << matrix << " line " << line << " block at " << begin;
      }
    }
  }
}

TEST_P(Sparse, any_range_is_a_slice) {
  const std::vector<double> whole = values_of(geometry(), 0, elements());
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    const std::size_t first = random() % whole.size();
    const std::size_t count = std::min<std::size_t>(random() % 3000, whole.size() - first);
    const std::vector<double> part = values_of(geometry(), first, count);
    ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first))) << first;
  }
}

TEST_P(Sparse, same_bits_on_every_set) {
  const core::Isa before = core::active_isa();
  const std::vector<double> expected = values_of(geometry(), 0, elements());
  for (const core::Isa isa : {core::Isa::baseline, core::Isa::avx2, core::Isa::avx512}) {
    core::force_isa(isa);
    EXPECT_EQ(values_of(geometry(), 0, elements()), expected);
  }
  core::force_isa(before);
}

/// Every position of a block is taken about equally often, so no index of the reduction goes untested.
TEST(SparsePositions, are_uniform) {
  data::ExactGeometry geometry{.plan = {.stride = 8}, .rows = 4000, .cols = 16};
  for (const bool along_rows : {false, true}) {
    geometry.reduction_along_rows = along_rows;
    geometry.rows = along_rows ? 16 : 4000;
    geometry.cols = along_rows ? 4000 : 16;
    std::vector<int> taken(16);
    const std::vector<double> values = values_of(geometry, 0, 64000);
    for (std::size_t i = 0; i < values.size(); ++i) {
      taken[along_rows ? i / 4000 : i % 16] += values[i] != 0;
    }
    for (const int count : taken) {
      EXPECT_NEAR(count, 500, 100);
    }
  }
}

TEST(SparsePositions, differ_from_matrix_to_matrix) {
  const data::ExactGeometry geometry{.plan = {.stride = 8}, .rows = 64, .cols = 32, .reduction_along_rows = true};
  const std::vector<double> values = values_of(geometry, 0, 4096);
  std::size_t same = 0;
  for (std::size_t i = 0; i < 2048; ++i) {
    same += values[i] != 0 && values[2048 + i] != 0;
  }
  EXPECT_NEAR(static_cast<double>(same), 32, 30);  // 256 blocks, one in eight by chance
}

TEST(DenseOperand, fills_its_range) {
  data::ExactGeometry geometry{.plan = {.max_first = 2, .max_second = 4, .stride = 9}, .rows = 10, .cols = 1000};
  geometry.first_operand = false;
  const std::vector<double> values = values_of(geometry, 0, 10000);
  EXPECT_EQ(std::set<double>(values.begin(), values.end()), (std::set<double>{-4, -3, -2, -1, 1, 2, 3, 4}));
}

TEST(PositiveForm, is_four_to_fifteen_everywhere) {
  data::ExactGeometry geometry{
      .plan = {.max_first = 1, .max_second = 1, .stride = 5, .positive = true}, .rows = 100, .cols = 100};
  for (const bool first : {true, false}) {
    geometry.first_operand = first;
    const std::vector<double> values = values_of(geometry, 0, 10000);
    const std::set<double> seen(values.begin(), values.end());
    EXPECT_EQ(seen, (std::set<double>{4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  }
}

TEST(ExactErrors, impossible_plans) {
  std::vector<double> out(4);
  for (const op::ExactPlan& plan : {op::ExactPlan{.max_first = 0}, op::ExactPlan{.stride = 0},
                                    op::ExactPlan{.max_first = -3}, op::ExactPlan{.stride = -1}}) {
    EXPECT_THROW(data::generate_exact({.plan = plan, .rows = 2, .cols = 2}, kStream, 0, out), core::InternalError);
  }
  EXPECT_THROW(data::generate_exact({.plan = {}, .rows = 0, .cols = 2}, kStream, 0, out), core::InternalError);
}

}  // namespace
}  // namespace numcheck::test
