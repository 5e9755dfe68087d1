// The distribution "rows": every row has its own spread and mean, and the same bits however the tensor is divided.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "core/isa.hpp"
#include "core/parallel.hpp"
#include "data/distribution.hpp"

namespace numcheck::test {
namespace {

constexpr core::StreamId kStream{77, 3, 4};

data::Distribution rows_between(double low, double high) {
  return {"rows", {low, high}};
}

std::vector<double> values_of(const data::Distribution& distribution, std::uint64_t first, std::size_t count,
                              std::uint64_t cols) {
  std::vector<double> values(count, -77);
  data::generate(distribution, kStream, first, values, {.cols = cols});
  return values;
}

std::vector<std::uint64_t> bits_of(const std::vector<double>& values) {
  std::vector<std::uint64_t> bits(values.size());
  std::ranges::transform(values, bits.begin(), [](double x) { return std::bit_cast<std::uint64_t>(x); });
  return bits;
}

/// A row as spread * z + mean, by least squares.
struct Row {
  double spread = 0;
  double mean = 0;
};

Row fit(const double* z, const double* x, std::size_t cols) {
  double sum_z = 0, sum_x = 0;
  for (std::size_t j = 0; j < cols; ++j) {
    sum_z += z[j];
    sum_x += x[j];
  }
  const auto n = static_cast<double>(cols);
  double zz = 0, zx = 0;
  for (std::size_t j = 0; j < cols; ++j) {
    zz += (z[j] - sum_z / n) * (z[j] - sum_z / n);
    zx += (z[j] - sum_z / n) * (x[j] - sum_x / n);
  }
  return {zx / zz, sum_x / n - zx / zz * sum_z / n};
}

constexpr std::size_t kRows = 3000;
constexpr std::size_t kColumns = 64;

/// Spread and mean of every row; its elements must follow them up to rounding to FP32.
std::vector<Row> rows_of(double low, double high) {
  const std::vector<double> z = values_of({"normal", {1.0}}, 0, kRows * kColumns, kColumns);
  const std::vector<double> x = values_of(rows_between(low, high), 0, kRows * kColumns, kColumns);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < x.size(); i += kColumns) {
    rows.push_back(fit(&z[i], &x[i], kColumns));
    const Row& row = rows.back();
    for (std::size_t j = i; j < i + kColumns; ++j) {
      EXPECT_NEAR(x[j], row.spread * z[j] + row.mean, (4 * row.spread + std::fabs(row.mean)) * 0x1p-23) << j;
    }
  }
  return rows;
}

TEST(Rows, spreads_are_log_uniform) {
  std::vector<double> exponents;
  for (const Row& row : rows_of(-12, 4)) {
    exponents.push_back(std::log2(row.spread));
  }
  std::ranges::sort(exponents);
  EXPECT_GE(exponents.front(), -12.001);
  EXPECT_LE(exponents.back(), 4.001);
  // Kolmogorov's distance times sqrt(n): above 2 has probability 7e-4.
  double distance = 0;
  for (std::size_t i = 0; i < kRows; ++i) {
    distance = std::max(distance, std::fabs((exponents[i] + 12) / 16 - (static_cast<double>(i) + 0.5) / kRows));
  }
  EXPECT_LT(distance * std::sqrt(kRows), 2);
}

TEST(Rows, means_are_0_16_or_1024_spreads) {
  std::map<double, int> count;
  for (const Row& row : rows_of(-12, 4)) {
    const double ratio = row.mean / row.spread;
    double nearest = 0;
    for (const double each : {16.0, -16.0, 1024.0, -1024.0}) {
      nearest = std::fabs(ratio - each) < std::fabs(ratio - nearest) ? each : nearest;
    }
    // Elements near 1024 spreads are FP32 numbers, 2^-14 of a spread apart.
    EXPECT_NEAR(ratio, nearest, 1e-4 * std::fabs(nearest) + 1e-6);
    ++count[nearest];
  }
  ASSERT_EQ(count.size(), 5U);
  for (const auto& [ratio, rows] : count) {
    const double expected = kRows / (ratio == 0 ? 3.0 : 6.0);
    EXPECT_NEAR(rows, expected, 5 * std::sqrt(expected)) << ratio;
  }
}

TEST(Rows, one_spread_for_all) {
  for (const Row& row : rows_of(3, 3)) {
    EXPECT_NEAR(row.spread, 8, 1e-3);
  }
  const std::vector<Row> swapped = rows_of(4, -12);
  EXPECT_TRUE(
      std::ranges::all_of(swapped, [](const Row& row) { return row.spread > 0x0.fffp-12 && row.spread < 16.01; }));
}

// A shard or a thread generates ranges that begin and end anywhere in a row.
TEST(Rows, any_range_is_a_slice_of_the_whole) {
  std::mt19937 random(3);
  for (const std::uint64_t cols : {1U, 2U, 37U, 256U, 1000U, 5000U}) {
    const std::vector<std::uint64_t> whole = bits_of(values_of(rows_between(-12, 4), 0, 6000, cols));
    for (int i = 0; i < 100; ++i) {
      const std::size_t first = random() % 6000;
      const std::size_t count = random() % (6000 - first);
      const std::vector<std::uint64_t> part = bits_of(values_of(rows_between(-12, 4), first, count, cols));
      ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)))
          << cols << ": " << first << " + " << count;
    }
  }
}

TEST(Rows, same_bits_with_any_threads_and_shards) {
  constexpr std::size_t kCount = 50000;
  const std::vector<std::uint64_t> expected = bits_of(values_of(rows_between(-12, 4), 0, kCount, 193));
  const int before = core::thread_count();
  for (const int threads : {1, 2, 5}) {
    core::set_thread_count(threads);
    for (const std::size_t chunk : {193U, 777U, 4096U}) {
      std::vector<double> values(kCount);
      core::parallel_chunks(kCount, chunk, [&](std::size_t, std::size_t begin, std::size_t end) {
        data::generate(rows_between(-12, 4), kStream, begin, std::span(values).subspan(begin, end - begin),
                       {.cols = 193});
      });
      EXPECT_EQ(bits_of(values), expected) << threads << " " << chunk;
    }
  }
  core::set_thread_count(before);
}

TEST(Rows, same_bits_on_every_instruction_set) {
  const core::Isa before = core::active_isa();
  core::force_isa(core::Isa::baseline);
  const std::vector<std::uint64_t> expected = bits_of(values_of(rows_between(-12, 4), 500, 20000, 193));
  for (const core::Isa isa : {core::Isa::avx2, core::Isa::avx512}) {
    if (core::force_isa(isa) == isa) {
      EXPECT_EQ(bits_of(values_of(rows_between(-12, 4), 500, 20000, 193)), expected) << core::isa_name(isa);
    }
  }
  core::force_isa(before);
}

TEST(Rows, far_rows_are_finite) {
  const std::uint64_t far = std::uint64_t{1} << 50;
  for (const double value : values_of(rows_between(-100, 100), far, 5000, 16)) {
    ASSERT_TRUE(std::isfinite(value) && static_cast<double>(static_cast<float>(value)) == value);
  }
}

}  // namespace
}  // namespace numcheck::test
