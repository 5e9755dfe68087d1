// Errors that sums over a row are expected to have, against those of kernels that add by lanes.
#include "reference/row_sum.hpp"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace numcheck::reference {
namespace {

using Row = std::vector<float>;

/// Magnitudes in [1/2, 1), whose sign flips every `period`.
Row row_of(std::size_t columns, std::size_t period, std::mt19937& rng) {
  std::uniform_real_distribution<float> magnitude(0.5F, 1.0F);
  Row row(columns);
  for (std::size_t j = 0; j < columns; ++j) {
    row[j] = j / period % 2 == 0 ? magnitude(rng) : -magnitude(rng);
  }
  return row;
}

struct Kernel {
  std::size_t lanes;
  std::size_t vector;
};

/// In FP32: each lane adds its terms one after the other, then halves of the lanes are added.
float added(const Row& row, const Kernel& kernel) {
  std::vector<float> lanes(kernel.lanes);
  for (std::size_t j = 0; j < row.size(); ++j) {
    lanes[j / kernel.vector % kernel.lanes] += row[j];
  }
  for (std::size_t half = kernel.lanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) {
      lanes[i] += lanes[i + half];
    }
  }
  return lanes[0];
}

tolerance::Tracked predicted(const Row& row) {
  RowSum<tolerance::Tracked> sum;
  for (const float value : row) {
    sum.add(tolerance::Tracked(static_cast<double>(value)));
  }
  return sum.result();
}

/// Root mean square of error / predicted deviation over rows.
double rms_of(std::size_t columns, std::size_t period, const Kernel& kernel) {
  constexpr int kRows = 200;
  std::mt19937 rng(static_cast<std::mt19937::result_type>(columns + period));
  double squares = 0;
  for (int i = 0; i < kRows; ++i) {
    const Row row = row_of(columns, period, rng);
    const tolerance::Tracked expected = predicted(row);
    const double error = static_cast<double>(added(row, kernel)) - expected.y;
    squares += error * error / expected.v;
  }
  return std::sqrt(squares / kRows);
}

// Runs of 64 of a sign, in a warp that loads four or eight at a time: each lane sees one sign only. (cuDNN 9.19's layernorm_fwd,
// hidden = 4799: its mean erred by 11 deviations of a model with 64 lanes of single terms.)
TEST(RowSum, lanes_of_one_sign_err_as_predicted) {
  for (const std::size_t columns : {1024, 4799, 30000}) {
    for (const auto& [period, kernel] : {std::pair(64, Kernel{32, 4}), std::pair(64, Kernel{32, 8}),
                                         std::pair(128, Kernel{32, 8}), std::pair(1, Kernel{64, 1})}) {
      EXPECT_LT(rms_of(columns, static_cast<std::size_t>(period), kernel), 1.5)
          << columns << " columns, runs of " << period << ", vectors of " << kernel.vector;
    }
  }
}

// Where the chain has the largest partial sums, the lanes add nothing to what is expected of it.
TEST(RowSum, rows_of_one_sign_are_expected_as_a_chain) {
  std::mt19937 rng(1);
  for (const std::size_t columns : {7, 64, 300, 5000}) {
    const Row row = row_of(columns, columns, rng);
    tolerance::Sum<tolerance::Tracked> chain;
    for (const float value : row) {
      chain.add(tolerance::Tracked(static_cast<double>(value)));
    }
    EXPECT_EQ(predicted(row).v, chain.result().v) << columns;
    EXPECT_EQ(predicted(row).b, chain.result().b) << columns;
  }
}

}  // namespace
}  // namespace numcheck::reference
