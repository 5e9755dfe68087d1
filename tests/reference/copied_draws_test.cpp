// Rows, columns and tiles of random draws that are copies of others.
#include "reference/copied_draws.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "reference/attention_dropout_copies.hpp"

namespace numcheck::reference {
namespace {

using Shape = DrawRegion::Shape;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// 1 where a draw was kept, 0 where it dropped, kNone where there is none.
struct Masks {
  std::size_t matrices, rows, columns;
  double probability;
  std::vector<double> values;

  Masks(std::size_t count, std::size_t down, std::size_t across, double p, unsigned seed = 7)
      : matrices(count), rows(down), columns(across), probability(p), values(count * down * across) {
    std::mt19937 engine(seed);
    std::ranges::generate(values, [&] { return std::generate_canonical<double, 32>(engine) < p ? 0 : 1; });
  }

  [[nodiscard]] double& at(std::size_t matrix, std::size_t row, std::size_t column) {
    return values[(matrix * rows + row) * columns + column];
  }

  /// No draw where `seen` does not hold.
  void hide(const std::function<bool(std::size_t, std::size_t)>& seen) {
    for (std::size_t n = 0; n < values.size(); ++n) {
      values[n] = seen(n / columns % rows, n % columns) ? values[n] : kNone;
    }
  }

  [[nodiscard]] std::optional<CopiedDraws> judged() const {
    std::vector<DrawMatrix> draws(matrices,
                                  DrawMatrix(static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)));
    for (std::size_t n = 0; n < values.size(); ++n) {
      if (!std::isnan(values[n])) {
        draws[n / columns / rows].add(static_cast<std::int64_t>(n / columns % rows),
                                      static_cast<std::int64_t>(n % columns), values[n] == 0);
      }
    }
    return copied_draws(draws, probability);
  }
};

/// "row 1 2 3 64": shape, matrix, row, column and length.
std::string name_of(const DrawRegion& region) {
  const std::string shape = region.shape == Shape::row ? "row" : region.shape == Shape::column ? "column" : "tile";
  return shape + " " + std::to_string(region.matrix) + " " + std::to_string(region.row) + " " +
         std::to_string(region.column) + " " + std::to_string(region.length);
}

void expect_none(const Masks& masks) {
  const std::optional<CopiedDraws> copy = masks.judged();
  EXPECT_EQ(copy ? copy->measured : 0, 0) << name_of(copy->first) << ", " << name_of(copy->second);
}

void expect_copy(const Masks& masks, const std::string& first, const std::string& second) {
  const std::optional<CopiedDraws> copy = masks.judged();
  ASSERT_TRUE(copy);
  EXPECT_GT(copy->measured, copy->limit);
  EXPECT_EQ(name_of(copy->first), first);
  EXPECT_EQ(name_of(copy->second), second);
}

TEST(DrawMatrix, transposes) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {3, 200}, {64, 64}, {130, 65}}) {
    DrawMatrix matrix(rows, columns);
    const auto drawn = [](int i, int j) { return (i * 7 + j * 5) % 11 < 6; };
    const auto dropped = [](int i, int j) { return (i * 3 + j * j) % 5 < 2; };
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) {
        if (drawn(i, j)) {
          matrix.add(i, j, dropped(i, j));
        }
      }
    }
    const DrawMatrix turned = matrix.transposed();
    ASSERT_EQ(turned.rows(), columns);
    ASSERT_EQ(turned.columns(), rows);
    for (int j = 0; j < columns; ++j) {
      for (int i = 0; i < (rows + 63) / 64 * 64; ++i) {
        const bool is = i < rows && drawn(i, j);
        ASSERT_EQ(turned.drawn(j, i / 64) >> (i % 64) & 1U, is ? 1U : 0U) << i << " " << j;
        ASSERT_EQ(turned.dropped(j, i / 64) >> (i % 64) & 1U, is && dropped(i, j) ? 1U : 0U) << i << " " << j;
      }
    }
  }
}

TEST(CopiedDraws, independent_draws_are_none) {
  for (const double p : {1e-300, 1e-3, 0.02, 0.1, 0.5, 0.9, 0.99}) {
    for (const auto& [matrices, rows, columns] : {std::tuple{1U, 1U, 1U},
                                                  {1U, 1U, 5000U},
                                                  {3U, 5000U, 1U},
                                                  {40U, 1U, 1U},
                                                  {6U, 100U, 150U},
                                                  {2U, 256U, 256U}}) {
      for (unsigned seed = 0; seed < 5; ++seed) {
        expect_none(Masks(matrices, rows, columns, p, seed));
      }
    }
  }
}

TEST(CopiedDraws, a_row_is_found_wherever_its_copy_is) {
  Masks masks(4, 100, 300, 0.1);
  for (std::size_t j = 0; j < 300; ++j) {
    masks.at(3, 17, j) = masks.at(1, 94, j);
  }
  expect_copy(masks, "row 1 94 0 512", "row 3 17 0 512");
  masks.at(3, 17, 299) = 1 - masks.at(3, 17, 299);
  expect_copy(masks, "row 1 94 0 256", "row 3 17 0 256");
}

TEST(CopiedDraws, a_column_is_found) {
  Masks masks(2, 400, 70, 0.5);
  for (std::size_t i = 0; i < 400; ++i) {
    masks.at(1, i, 69) = masks.at(1, i, 2);
  }
  expect_copy(masks, "column 1 0 2 512", "column 1 0 69 512");
}

TEST(CopiedDraws, a_tile_is_found) {
  Masks masks(3, 200, 200, 0.1);
  for (std::size_t n = 0; n < 256; ++n) {
    masks.at(2, 160 + n / 16, 16 + n % 16) = masks.at(0, 32 + n / 16, 48 + n % 16);
  }
  expect_copy(masks, "tile 0 32 48 16", "tile 2 160 16 16");
  masks = Masks(3, 200, 200, 0.01);
  for (std::size_t n = 0; n < 64 * 64; ++n) {
    masks.at(2, 64 + n / 64, 128 + n % 64) = masks.at(2, 0 + n / 64, 64 + n % 64);
  }
  expect_copy(masks, "tile 2 0 64 64", "tile 2 64 128 64");
}

TEST(CopiedDraws, a_transposed_matrix_is_found) {
  Masks masks(3, 130, 130, 0.25);
  for (std::size_t n = 0; n < 130 * 130; ++n) {
    masks.at(2, n / 130, n % 130) = masks.at(0, n % 130, n / 130);
  }
  const std::optional<CopiedDraws> copy = masks.judged();
  ASSERT_TRUE(copy);
  EXPECT_GT(copy->measured, copy->limit);
  EXPECT_NE(copy->first.shape, copy->second.shape);
  EXPECT_EQ(copy->draws, 130);
}

/// Row i sees i + 1 columns: of a copy further up only so many are seen.
TEST(CopiedDraws, only_what_is_drawn_is_compared) {
  const auto causal = [](std::size_t i, std::size_t j) { return j <= i; };
  Masks masks(2, 300, 300, 0.5);
  std::ranges::fill(masks.values.begin(), masks.values.begin() + 300 * 150, 1);
  masks.hide([](std::size_t i, std::size_t) { return i >= 150; });
  expect_none(masks);
  masks = Masks(2, 300, 300, 0.5);
  for (std::size_t j = 0; j < 300; ++j) {
    masks.at(1, 299, j) = masks.at(0, 140, j);
  }
  masks.hide(causal);
  expect_copy(masks, "row 0 140 0 128", "row 1 299 0 128");
}

/// Where hardly any draw drops, rows that are all kept are equal by chance.
TEST(CopiedDraws, what_is_kept_alike_is_little_evidence) {
  Masks masks(4, 100, 400, 0.01);
  for (const std::size_t row : {3U, 30U, 90U}) {
    for (std::size_t j = 0; j < 400; ++j) {
      masks.at(row % 4, row, j) = 1;
    }
  }
  expect_none(masks);
}

TEST(CopiedDraws, the_chance_is_that_of_the_draws) {
  Masks masks(1, 2, 128, 0.25);
  std::size_t dropped = 0;
  for (std::size_t j = 0; j < 128; ++j) {
    masks.at(0, 0, j) = masks.at(0, 1, j) = j % 4 == 0 ? 0 : 1;
    dropped += j % 4 == 0 ? 1 : 0;
  }
  const std::optional<CopiedDraws> copy = masks.judged();
  ASSERT_TRUE(copy);
  EXPECT_NEAR(copy->measured, -32 * std::log10(0.25) - 96 * std::log10(0.75), 1e-9);
  EXPECT_EQ(copy->draws, 128);
  EXPECT_EQ(dropped, 32U);
}

TEST(AttentionDropoutCopies, names_heads_queries_and_keys) {
  op::AttentionParams p;
  p.batches = 2;
  p.heads = 3;
  p.sq = 100;
  p.sk = 150;
  p.d = 8;
  p.dropout = 0.5;
  p.dropout_mask = "drawn";
  Masks masks(6, 100, 150, 0.5);
  EXPECT_EQ(judge_copies(p, masks.values, kGateOneIn).at(0).text, "no query, key or tile is a copy of another");
  for (std::size_t j = 0; j < 150; ++j) {
    masks.at(5, 99, j) = masks.at(2, 7, j);
  }
  const op::Finding found = judge_copies(p, masks.values, kGateOneIn).at(0);
  EXPECT_GT(found.measured, found.limit);
  EXPECT_EQ(found.text,
            "150 weights of head 5, query 99, keys 0 to 149 are those of head 2, query 7, keys 0 to 149, as "
            "independent ones are "
            "once in 10^45");
  p.sq = p.sk = 1;
  p.batches = p.heads = 1;
  EXPECT_TRUE(judge_copies(p, std::span(masks.values).first(1), kGateOneIn).empty());
}

}  // namespace
}  // namespace numcheck::reference
