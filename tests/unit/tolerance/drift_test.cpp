// Long sums of one sign: errors that no independence explains, in products and in tracked sums.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tolerance/accumulation.hpp"
#include "tolerance/chain_drift.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::tolerance {
namespace {

constexpr std::int64_t kOutputs = 8;

struct Problem {
  op::GemmParams p;
  std::vector<double> a, b;

  [[nodiscard]] double drift() const {
    const op::Operand first{.port = "a", .data = a.data(), .rows = p.m, .cols = p.k};
    const op::Operand second{.port = "b", .data = b.data(), .rows = p.k, .cols = p.n};
    return chain_drift(p, first, second);
  }
};

/// Numbers uniform between two limits, of FP32.
Problem uniform(std::int64_t k, double low, double high) {
  std::mt19937 engine(1);
  Problem out;
  out.p.m = out.p.n = kOutputs;
  out.p.k = k;
  const auto draw = [&] {
    return static_cast<double>(static_cast<float>(low + (high - low) * static_cast<double>(engine()) * 0x1p-32));
  };
  out.a.resize(static_cast<std::size_t>(kOutputs * k));
  out.b.resize(out.a.size());
  for (double& x : out.a) {
    x = draw();
  }
  for (double& x : out.b) {
    x = draw();
  }
  return out;
}

double spread(std::int64_t k) {
  return 0.245 * 0x1p-24 * std::sqrt(static_cast<double>(k));
}

TEST(ChainDrift, ordinary_sums_have_none) {
  EXPECT_EQ(uniform(4096, 0, 1).drift(), 0);
  EXPECT_EQ(uniform(4096, -1, 1).drift(), 0);
  EXPECT_EQ(uniform(1 << 14, 0.5, 1).drift(), 0);
}

TEST(ChainDrift, long_sums_of_one_sign_lose_more_than_independent_errors_would) {
  // (k u)^2 / 33 with f(0) E[p] = 1.2: 8.9e-6 at 2^18, that is 1.2 spreads; 2^20: 1.4e-4.
  const double drift = uniform(1 << 20, 0, 1).drift();
  EXPECT_GT(drift, 5 * spread(1 << 20));
  EXPECT_LT(drift, 3e-4);
}

TEST(ChainDrift, equal_products_are_the_worst) {
  const double k = 1 << 16;
  const double drift = uniform(1 << 16, 0.1, 0.1).drift();
  EXPECT_GT(drift, 20 * spread(1 << 16));
  EXPECT_LE(drift, k * 0x1p-24 / 2);
}

TEST(ChainDrift, reads_transposed_operands_where_they_are) {
  Problem plain = uniform(1 << 16, 1, 1.0001);
  ASSERT_GT(plain.drift(), 0);
  Problem transposed = plain;
  transposed.p.trans_a = transposed.p.trans_b = true;
  const auto k = static_cast<std::size_t>(plain.p.k);
  for (std::size_t i = 0; i < kOutputs; ++i) {
    for (std::size_t t = 0; t < k; ++t) {
      transposed.a[t * kOutputs + i] = plain.a[i * k + t];
      transposed.b[i * k + t] = plain.b[t * kOutputs + i];
    }
  }
  const op::Operand a{.port = "a", .data = transposed.a.data(), .rows = plain.p.k, .cols = kOutputs};
  const op::Operand b{.port = "b", .data = transposed.b.data(), .rows = kOutputs, .cols = plain.p.k};
  EXPECT_EQ(chain_drift(transposed.p, a, b), plain.drift());
}

TEST(ChainDrift, widens_the_moment_and_the_slope) {
  const Accumulation plain = fma_accumulation(1000);
  const Accumulation drifted = fma_accumulation(1000, 1e-5);
  EXPECT_DOUBLE_EQ(drifted.value, plain.value + 1e-10);
  EXPECT_DOUBLE_EQ(drifted.slope_slack, 1e-5);
  EXPECT_EQ(drifted.magnitude, plain.magnitude) << "the bound holds for every order as it is";
}

TEST(TrackedSum, has_the_drift_of_equal_terms_only_where_there_is_one) {
  const auto sum_of = [](std::size_t n, auto term) {
    Sum<Tracked> sum;
    float chain = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const float x = term(i);
      sum.add(static_cast<double>(x));
      chain += x;
    }
    const Tracked total = sum.result();
    const double predicted = total.y * total.y * kRoundVariance * kUnit32 * kUnit32 * static_cast<double>(n) / 3;
    return std::pair(total.v / predicted, std::pow(static_cast<double>(chain) - total.y, 2) / total.v);
  };
  const auto [widened, covered] = sum_of(1 << 18, [](std::size_t) { return 0.1F; });
  EXPECT_GT(widened, 100);
  EXPECT_LE(covered, 1);
  std::mt19937 engine(1);
  const auto random = [&](std::size_t) { return static_cast<float>(engine()) * 0x1p-32F; };
  EXPECT_NEAR(sum_of(4096, random).first, 1, 0.05) << "nothing is added to the moment of ordinary terms";
}

TEST(ReplayedOutputs, are_spread_and_all_different) {
  constexpr std::int64_t kMost = 1024;
  for (const auto& [m, n] : {std::pair{32, 32},
                             {16, 16},
                             {64, 64},
                             {128, 64},
                             {31, 33},
                             {4096, 8},
                             {1, 2000},
                             {2000, 1},
                             {300, 7},
                             {4096, 4096}}) {
    const std::int64_t outputs = std::min<std::int64_t>(kMost, std::int64_t{m} * n);
    std::set<std::pair<std::int64_t, std::int64_t>> places;
    std::set<std::int64_t> rows, columns;
    for (std::int64_t s = 0; s < outputs; ++s) {
      const OutputPlace place = replayed_output(s, m, n);
      ASSERT_LT(place.row, m);
      ASSERT_LT(place.column, n);
      places.emplace(place.row, place.column);
      rows.insert(place.row);
      columns.insert(place.column);
    }
    EXPECT_EQ(places.size(), static_cast<std::size_t>(outputs)) << m << " x " << n;
    EXPECT_GE(static_cast<double>(rows.size()), 0.6 * static_cast<double>(std::min<std::int64_t>(m, outputs)))
        << m << " x " << n;
    EXPECT_GE(static_cast<double>(columns.size()), 0.6 * static_cast<double>(std::min<std::int64_t>(n, outputs)))
        << m << " x " << n;
  }
}

}  // namespace
}  // namespace numcheck::tolerance
