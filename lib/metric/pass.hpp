// The parallel pass: a fixed grid of tiles, each with its own sums, merged in grid order.
#pragma once

#include <array>
#include <cstdint>

#include "metric/accumulators.hpp"
#include "metric/clusters.hpp"
#include "metric/compare.hpp"
#include "metric/groups.hpp"
#include "metric/reader.hpp"
#include "metric/residuals.hpp"
#include "metric/row_scan.hpp"
#include "metric/setup.hpp"

namespace numcheck::metric {

/// Everything that one pass over the elements yields.
struct PassResult {
  Accumulators sums{};
  SpecialCounts specials;
  std::array<std::uint64_t, kSpreadBins> spread{};
  std::array<std::uint64_t, kUlpBins> ulps{};
  SlopeTotals slope_totals;
  Groups groups;
  Residuals residuals;  ///< of 16- and 8-bit numbers
  double slope = 0;
  double slope_error = 0;      ///< infinite below 8 x 8 outputs
  double slope_predicted = 0;  ///< see Statistics::slope_predicted_se
  double slope_clusters = 0;   ///< see Statistics
};

/// `scan`: of rows from a source; otherwise null.
[[nodiscard]] PassResult run_pass(const CompareInput& input, const Setup& setup, RowScan* scan);

}  // namespace numcheck::metric
