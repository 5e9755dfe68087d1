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

/// Number of distinct values.
std::size_t distinct(std::vector<std::int64_t> keys) {
  std::sort(keys.begin(), keys.end());
  return static_cast<std::size_t>(std::unique(keys.begin(), keys.end()) - keys.begin());
}

std::int64_t row_of(std::int64_t index, const op::Port& port) {
  return index / port.cols;
}

/// Columns of different matrices of the batch count as different.
std::int64_t column_of(std::int64_t index, const op::Port& port) {
  return index / (port.rows * port.cols) * port.cols + index % port.cols;
}

}  // namespace

void PartialSums::resize(std::size_t part_count, std::size_t cluster_count) {
  parts = part_count;
  clusters = cluster_count;
  a.assign(parts * clusters, 0.0);
  b.assign(parts * clusters, 0.0);
  z.assign(parts * clusters, 0.0);
}

double PartialSums::total_z(std::size_t cluster) const {
  double total = 0;
  for (std::size_t p = 0; p < parts; ++p) {
    total += z[p * clusters + cluster];
  }
  return total;
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

double PartialSums::effective_clusters() const {
  double squares = 0, fourths = 0;
  for (std::size_t c = 0; c < clusters; ++c) {
    double cluster_b = 0;
    for (std::size_t p = 0; p < parts; ++p) {
      cluster_b += b[p * clusters + c];
    }
    squares += cluster_b * cluster_b;
    fourths += cluster_b * cluster_b * cluster_b * cluster_b;
  }
  return fourths > 0 ? squares * squares / fourths : 0;
}

op::Port clustered_shape(const op::Port& port) {
  op::Port shape = port;
  if (port.heads > 0 && port.rows < kFewestClusters) {
    shape.rows = port.batch * port.rows * port.heads;
    shape.cols = port.cols / port.heads;
    shape.batch = shape.heads = 1;
  }
  return shape;
}

double student_limit(double normal, double clusters) {
  const double freedom = std::max(1.0, clusters - 1);
  const double z = normal * (8 * freedom + 3) / (8 * freedom + 1);
  return std::sqrt(freedom * std::expm1(z * z / freedom));
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
  const auto row = [&](std::size_t i) { return row_of(sample.indices[i], port); };
  const auto column = [&](std::size_t i) { return column_of(sample.indices[i], port); };
  const auto [row_squares, rows] = squared_runs(order, row, a, b, slope);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t left, std::size_t right) { return column(left) < column(right); });
  const auto [column_squares, columns] = squared_runs(order, column, a, b, slope);
  const std::int64_t fewest = std::min(rows, columns);
  const double cluster = static_cast<double>(order.size()) / static_cast<double>(std::max<std::int64_t>(1, fewest));
  return {row_squares, column_squares, fewest >= kFewestClusters ? cluster : 0};
}

double copies_of(const CompareInput& input) {
  const op::Port port = clustered_shape(*input.port);
  const bool rows = input.model->rows_agree;
  const bool columns = input.model->columns_agree;
  if (input.model->one_error) {
    return static_cast<double>(std::max<std::int64_t>(1, port.elements()));
  }
  if (input.sample == nullptr || input.sample->all()) {
    return static_cast<double>(std::max({rows ? port.rows : 1, columns ? port.cols : 1, std::int64_t{1}}));
  }
  const std::vector<std::int64_t>& indices = input.sample->indices;
  const auto copies = [&](bool wanted, std::int64_t (*key_of)(std::int64_t, const op::Port&)) {
    if (!wanted) {
      return 1.0;
    }
    std::vector<std::int64_t> keys(indices.size());
    std::transform(indices.begin(), indices.end(), keys.begin(), [&](std::int64_t i) { return key_of(i, port); });
    return static_cast<double>(indices.size()) / static_cast<double>(distinct(std::move(keys)));
  };
  return std::max(copies(rows, column_of), copies(columns, row_of));
}

}  // namespace numcheck::metric
