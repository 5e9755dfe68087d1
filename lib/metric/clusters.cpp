#include "metric/clusters.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace numcheck::metric {
namespace {

/// Sum over runs of equal keys of (sum of a - slope b)^2, and the number of runs.
template <class KeyOf>
std::pair<double, std::int64_t> squared_runs(const std::vector<std::size_t>& order, KeyOf key_of, const double* a,
                                             const double* b, double slope) {
  double squares = 0;
  std::int64_t runs = 0;
  for (std::size_t i = 0; i < order.size();) {
    const std::int64_t key = key_of(order[i]);
    double residual = 0;
    for (; i < order.size() && key_of(order[i]) == key; ++i) {
      residual += a[order[i]] - slope * b[order[i]];
    }
    squares += residual * residual;
    ++runs;
  }
  return {squares, runs};
}

}  // namespace

void PartialSums::resize(std::size_t part_count, std::size_t cluster_count) {
  parts = part_count;
  clusters = cluster_count;
  a.assign(parts * clusters, 0.0);
  b.assign(parts * clusters, 0.0);
}

double PartialSums::squared_residuals(double slope) const {
  double squares = 0;
  for (std::size_t c = 0; c < clusters; ++c) {
    double cluster_a = 0;
    double cluster_b = 0;
    for (std::size_t p = 0; p < parts; ++p) {
      cluster_a += a[p * clusters + c];
      cluster_b += b[p * clusters + c];
    }
    const double residual = cluster_a - slope * cluster_b;
    squares += residual * residual;
  }
  return squares;
}

double clustered_error(const SlopeTotals& totals, double rows, double columns, double slope) {
  if (!(totals.b > 0)) {
    return std::numeric_limits<double>::infinity();
  }
  const double squares = std::max(0.0, totals.aa - 2 * slope * totals.ab + slope * slope * totals.bb);
  const double variance = std::max({rows + columns - squares, rows, columns, squares});
  return std::sqrt(variance) / totals.b;
}

SampleClusters cluster_sample(const op::Sample& sample, const op::Port& port, const double* a, const double* b,
                              double slope) {
  std::vector<std::size_t> order(sample.indices.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  const std::int64_t matrix = port.rows * port.cols;
  const auto row_of = [&](std::size_t i) { return sample.indices[i] / port.cols; };
  const auto column_of = [&](std::size_t i) {
    const std::int64_t index = sample.indices[i];
    return index / matrix * port.cols + index % port.cols;
  };
  const auto [row_squares, rows] = squared_runs(order, row_of, a, b, slope);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t left, std::size_t right) { return column_of(left) < column_of(right); });
  const auto [column_squares, columns] = squared_runs(order, column_of, a, b, slope);
  const std::int64_t fewest = std::min(rows, columns);
  const double cluster = static_cast<double>(order.size()) / static_cast<double>(std::max<std::int64_t>(1, fewest));
  return {row_squares, column_squares, fewest >= kFewestClusters ? cluster : 0};
}

}  // namespace numcheck::metric
