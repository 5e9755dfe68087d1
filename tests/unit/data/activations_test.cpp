// The distribution "activations": what its parameters promise, and the same bits however the tensor is divided.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "core/hash.hpp"
#include "core/isa.hpp"
#include "core/parallel.hpp"
#include "data/distribution.hpp"
#include "op/field.hpp"

namespace numcheck::test {
namespace {

constexpr core::StreamId kStream{77, 3, 4};

/// Neither outliers nor means: the low-rank part and the noise alone.
data::ActivationParams plain(std::int64_t rank, double noise) {
  return {.rank = rank, .noise = noise, .outlier = 1, .drift = 0, .sink = 0};
}

struct Matrix {
  std::uint64_t rows;
  std::uint64_t cols;
  std::vector<double> values;

  [[nodiscard]] double at(std::uint64_t row, std::uint64_t col) const {
    return values[static_cast<std::size_t>(row * cols + col)];
  }
  [[nodiscard]] double row_mean(std::uint64_t row) const {
    const auto* const begin = &values[static_cast<std::size_t>(row * cols)];
    return std::accumulate(begin, begin + cols, 0.0) / static_cast<double>(cols);
  }
};

void generate(const data::ActivationParams& params, const data::Geometry& geometry, std::uint64_t first,
              std::span<double> out, const core::StreamId& stream = kStream) {
  data::generate({"activations", op::to_params(params)}, stream, first, out, geometry);
}

Matrix matrix(const data::ActivationParams& params, std::uint64_t rows, std::uint64_t cols, std::uint64_t batch = 1,
              const core::StreamId& stream = kStream) {
  Matrix result{batch * rows, cols, std::vector<double>(static_cast<std::size_t>(batch * rows * cols), -77)};
  generate(params, {.cols = cols, .rows = rows}, 0, result.values, stream);
  return result;
}

std::vector<std::uint64_t> bits_of(const std::vector<double>& values) {
  std::vector<std::uint64_t> bits(values.size());
  std::ranges::transform(values, bits.begin(), [](double x) { return std::bit_cast<std::uint64_t>(x); });
  return bits;
}

/// Number of pivots above `smallest` in an elimination with complete pivoting.
int rank_of(Matrix m, double smallest) {
  int rank = 0;
  for (;; ++rank) {
    std::uint64_t row = 0, col = 0;
    for (std::uint64_t i = 0; i < m.rows * m.cols; ++i) {
      if (std::fabs(m.at(i / m.cols, i % m.cols)) > std::fabs(m.at(row, col))) {
        row = i / m.cols;
        col = i % m.cols;
      }
    }
    const double pivot = m.at(row, col);
    if (std::fabs(pivot) < smallest) {
      return rank;
    }
    const Matrix before = m;
    for (std::uint64_t i = 0; i < m.rows * m.cols; ++i) {
      m.values[static_cast<std::size_t>(i)] -= before.at(i / m.cols, col) / pivot * before.at(row, i % m.cols);
    }
  }
}

TEST(Activations, have_the_rank_that_was_given) {
  for (const std::int64_t rank : {1, 3, 8, 20}) {
    EXPECT_EQ(rank_of(matrix(plain(rank, 0), 40, 50), 1e-4), rank);
    EXPECT_EQ(rank_of(matrix(plain(rank, 0.01), 40, 50), 1e-4), 40) << "noise has every direction";
  }
}

TEST(Activations, noise_is_a_share_of_the_variance) {
  for (const double noise : {0.0, 0.25, 1.0}) {
    const Matrix m = matrix(plain(8, noise), 500, 3000);
    const double square = std::inner_product(m.values.begin(), m.values.end(), m.values.begin(), 0.0);
    EXPECT_NEAR(square / static_cast<double>(m.values.size()), 1, 0.1) << noise;
  }
  std::vector<double> z(3000);
  data::generate({"normal", {1.0}}, kStream, 0, z);
  EXPECT_EQ(bits_of(matrix(plain(8, 1), 30, 100).values), bits_of(z)) << "nothing but noise";
}

/// Channels that are larger than the others by the factor.
std::vector<std::uint64_t> outliers_of(const Matrix& m, double factor) {
  std::vector<std::uint64_t> found;
  for (std::uint64_t col = 0; col < m.cols; ++col) {
    double square = 0;
    for (std::uint64_t row = 0; row < m.rows; ++row) {
      square += m.at(row, col) * m.at(row, col);
    }
    if (std::sqrt(square / static_cast<double>(m.rows)) > factor / 3) {
      found.push_back(col);
    }
  }
  return found;
}

TEST(Activations, one_channel_in_64_is_an_outlier) {
  data::ActivationParams params = plain(8, 0.25);
  params.outlier = 100;
  constexpr std::uint64_t kCols = 64 * 40 + 5;
  const Matrix m = matrix(params, 60, kCols, 3);
  const std::vector<std::uint64_t> all = outliers_of(m, 100);
  ASSERT_EQ(all.size(), 41U) << "one of the last five as well";
  std::vector<std::uint64_t> places;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i] / 64, i);
    places.push_back(all[i] % 64);
  }
  std::ranges::sort(places);
  EXPECT_GT(std::ranges::unique(places).begin() - places.begin(), 20) << "not always the same place";
  for (std::uint64_t matrix = 0; matrix < 3; ++matrix) {
    const auto begin = m.values.begin() + static_cast<std::ptrdiff_t>(matrix * 60 * kCols);
    EXPECT_EQ(outliers_of({60, kCols, {begin, begin + static_cast<std::ptrdiff_t>(60 * kCols)}}, 100), all);
  }
}

TEST(Activations, the_mean_drifts_and_the_first_row_is_a_sink) {
  data::ActivationParams params = plain(8, 0.25);
  params.drift = 6;
  params.sink = 40;
  const Matrix m = matrix(params, 50, 4000, 2);
  for (std::uint64_t row = 0; row < m.rows; ++row) {
    const double drift = 6 * (static_cast<double>(row % 50) + 0.5) / 50;
    EXPECT_NEAR(m.row_mean(row), drift + (row % 50 == 0 ? 40 : 0), 0.25) << row;
  }
}

TEST(Activations, vectors_have_neither_mean_nor_rank) {
  const data::ActivationParams params{.outlier = 16, .drift = 100, .sink = 1000};
  std::vector<double> z(600);
  data::generate({"normal", {1.0}}, kStream, 0, z);
  EXPECT_EQ(bits_of(matrix(params, 600, 1).values), bits_of(z)) << "one column";
  const std::vector<double> row = matrix(params, 1, 600).values;
  int scaled = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    scaled += row[i] == 16 * z[i] ? 1 : 0;
    EXPECT_TRUE(row[i] == z[i] || row[i] == 16 * z[i]) << i;
  }
  EXPECT_EQ(scaled, 10);
}

/// Mean weight of the first key over the second half of the queries.
double weight_of_first_key(const data::ActivationParams& params) {
  constexpr std::uint64_t kLength = 200, kDim = 128;
  const Matrix q = matrix(params, kLength, kDim, 1, {77, 3, 1});
  const Matrix k = matrix(params, kLength, kDim, 1, {77, 3, 2});
  double sum = 0;
  for (std::uint64_t i = kLength / 2; i < kLength; ++i) {
    std::vector<double> scores(kLength);
    for (std::uint64_t j = 0; j < kLength; ++j) {
      for (std::uint64_t c = 0; c < kDim; ++c) {
        scores[static_cast<std::size_t>(j)] += q.at(i, c) * k.at(j, c) / std::sqrt(kDim);
      }
    }
    const double largest = std::ranges::max(scores);
    double all = 0;
    for (const double score : scores) {
      all += std::exp(score - largest);
    }
    sum += std::exp(scores[0] - largest) / all;
  }
  return sum / (kLength / 2);
}

TEST(Activations, the_first_key_draws_attention) {
  EXPECT_GT(weight_of_first_key({}), 0.5);
  EXPECT_GT(weight_of_first_key({.outlier = 1}), 0.5);
  EXPECT_LT(weight_of_first_key({.outlier = 1, .sink = 0}), 0.05);
}

TEST(Activations, are_fp32_numbers_and_within_fp16_unless_told_otherwise) {
  for (const double value : matrix({}, 300, 2000).values) {
    ASSERT_LT(std::fabs(value), 65504.0 / 16);
    ASSERT_EQ(static_cast<double>(static_cast<float>(value)), value);
  }
  for (const double value :
       matrix({.rank = 64, .noise = 0, .outlier_every = 1, .outlier = 1e6, .drift = -1e6, .sink = -1e6}, 9, 300)
           .values) {
    ASSERT_TRUE(std::isfinite(value) && static_cast<double>(static_cast<float>(value)) == value);
  }
}

const data::Geometry kGeometries[] = {{.cols = 1, .rows = 6000},   {.cols = 2, .rows = 300},  {.cols = 37, .rows = 20},
                                      {.cols = 256, .rows = 8},    {.cols = 5000, .rows = 2}, {.cols = 1500, .rows = 4},
                                      {.cols = 100, .rows = 1000}, {.cols = 6000, .rows = 1}};

// A shard or a thread generates ranges that begin and end anywhere in a row.
TEST(Activations, any_range_is_a_slice_of_the_whole) {
  std::mt19937 random(3);
  for (const data::Geometry& geometry : kGeometries) {
    std::vector<double> values(6000);
    generate({}, geometry, 0, values);
    const std::vector<std::uint64_t> whole = bits_of(values);
    for (int i = 0; i < 50; ++i) {
      const std::size_t first = random() % 6000;
      std::vector<double> part(random() % (6000 - first));
      generate({}, geometry, first, part);
      const std::vector<std::uint64_t> bits = bits_of(part);
      ASSERT_TRUE(std::equal(bits.begin(), bits.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)))
          << geometry.rows << " x " << geometry.cols << ": " << first << " + " << bits.size();
    }
  }
}

TEST(Activations, same_bits_with_any_threads_and_shards) {
  const data::Geometry geometry{.cols = 193, .rows = 50};
  std::vector<double> expected(50000);
  generate({}, geometry, 0, expected);
  const int before = core::thread_count();
  for (const int threads : {1, 2, 5}) {
    core::set_thread_count(threads);
    for (const std::size_t chunk : {193U, 777U, 4096U}) {
      std::vector<double> values(expected.size());
      core::parallel_chunks(values.size(), chunk, [&](std::size_t, std::size_t begin, std::size_t end) {
        generate({}, geometry, begin, std::span(values).subspan(begin, end - begin));
      });
      EXPECT_EQ(bits_of(values), bits_of(expected)) << threads << " " << chunk;
    }
  }
  core::set_thread_count(before);
}

/// Digests of the first version. A change here changes the inputs of every case with this distribution: it needs a new
/// format number and a line in CHANGELOG, not a new expectation.
TEST(Activations, same_bits_on_every_instruction_set) {
  const core::Isa before = core::active_isa();
  for (const core::Isa isa : {core::Isa::baseline, core::Isa::avx2, core::Isa::avx512}) {
    if (core::force_isa(isa) != isa) {
      continue;
    }
    const Matrix ordinary = matrix({}, 50, 1193, 2);
    const Matrix other = matrix({.rank = 3, .noise = 0.1, .outlier_every = 7, .outlier = 0.3, .drift = -0.7}, 13, 64);
    EXPECT_EQ(core::digest_of(std::as_bytes(std::span(ordinary.values))).hex(), "7e73f763dd13c8280fd8e1ea7f0600ae")
        << core::isa_name(isa);
    EXPECT_EQ(core::digest_of(std::as_bytes(std::span(other.values))).hex(), "27964a5dd08a2c7cea810dbf0bd9bb27")
        << core::isa_name(isa);
  }
  core::force_isa(before);
}

TEST(Activations, pattern_knows_the_mean_of_the_last_row) {
  const auto pattern = [](double drift, double outlier = 20, core::Dtype format = core::Dtype::bf16, double sink = 4) {
    const data::ActivationParams params{.outlier = outlier, .drift = drift, .sink = sink};
    return data::pattern_of({"activations", op::to_params(params)}, format);
  };
  EXPECT_EQ(pattern(0).coherence, 0);
  EXPECT_EQ(pattern(0).order, data::Order::random);
  EXPECT_NEAR(pattern(-1).coherence, 1 / (0.6826894921370859 + 2 * 0.24197072451914337), 1e-9);
  EXPECT_EQ(pattern(1e6).order, data::Order::structured) << "nearly equal elements";
  EXPECT_EQ(pattern(1, 100).order, data::Order::random);
  EXPECT_EQ(pattern(8, 100).order, data::Order::structured)
      << "what is truncated may have another sign than the outliers";
  EXPECT_EQ(pattern(0.5, 20, core::Dtype::fp8_e4m3).order, data::Order::random);
  EXPECT_EQ(pattern(1, 20, core::Dtype::fp8_e4m3).order, data::Order::structured) << "14 bits";
  EXPECT_EQ(pattern(0, 20, core::Dtype::bf16, 1e4).order, data::Order::structured)
      << "a product with the sink drowns others";
  EXPECT_EQ(pattern(-8, 1000).order, data::Order::structured) << "beside 10^6, FP32 loses ordinary products";
  EXPECT_EQ(pattern(0, 1000).order, data::Order::random) << "but of either sign";
}

}  // namespace
}  // namespace numcheck::test
