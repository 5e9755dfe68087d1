// Sums per row and per column of the weighted slope, for its clustered standard error.
#pragma once

#include <cstdint>
#include <vector>

#include "metric/compare.hpp"

namespace numcheck::metric {

/// Per element a = w y e' and b = w y^2; the slope is s = sum a / sum b, its residuals q = a - s b. Outputs of one row
/// or column share operands, so their residuals are correlated:
///
///   SE^2 = max( R + C - Q, R, C, Q ) / (sum b)^2,   R = sum_rows (sum q)^2, C = sum_columns (sum q)^2, Q = sum q^2
///
/// Source: tensor_core_numerics, section 5.4 (two-way clustered variance, Cameron, Gelbach & Miller 2011).
struct SlopeTotals {
  double a = 0, b = 0;
  double aa = 0, ab = 0, bb = 0;
};

/// Sums per cluster, as partial sums that are added in order.
struct PartialSums {
  std::vector<double> a, b;  ///< [part][cluster]
  std::vector<double> z;     ///< what elements add to their groups, see groups.hpp
  std::size_t clusters = 0;
  std::size_t parts = 0;

  void resize(std::size_t part_count, std::size_t cluster_count);
  /// Sum over clusters of (A - slope B)^2.
  [[nodiscard]] double squared_residuals(double slope) const;
  /// How many clusters of equal weight would scatter as much: (sum B^2)^2 / sum B^4.
  [[nodiscard]] double effective_clusters() const;
  /// Sum of z of a cluster.
  [[nodiscard]] double total_z(std::size_t cluster) const;
};

/// Fewest rows and columns for which a standard error is meaningful.
inline constexpr std::int64_t kFewestClusters = 8;

/// The output as statistics see it. If matrices have too few rows, as those of a decoder that has one query, each row of a
/// head is one of a single matrix: their order in memory is the same.
[[nodiscard]] op::Port clustered_shape(const op::Port& port);

/// As many standard errors as Student's t has at the level of `normal` for a normal variable, if one is estimated from so many
/// clusters (Wallace's approximation).
[[nodiscard]] double student_limit(double normal, double clusters);

/// SE of the slope; infinite if sum b is 0.
[[nodiscard]] double clustered_error(const SlopeTotals& totals, double rows, double columns, double slope);

/// R and C of a sample: a and b per element, in the sample's order. `cluster` is the mean number of elements per row
/// or column, whichever is larger; 0 below 8 rows or columns.
struct SampleClusters {
  double rows = 0, columns = 0;
  double cluster = 0;
};
[[nodiscard]] SampleClusters cluster_sample(const op::Sample& sample, const op::Port& port, const double* a,
                                            const double* b, double slope);

/// Mean number of outputs that share one error: those of a column if the model's rows agree, those of a row if its
/// columns do, the larger if both (then an error has a part of each); 1 if neither.
[[nodiscard]] double copies_of(const CompareInput& input);

}  // namespace numcheck::metric
