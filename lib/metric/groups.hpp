// Errors of one row, one column, one tile, one matrix: what a fault there adds is little in the whole output.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "metric/accumulators.hpp"
#include "metric/clusters.hpp"
#include "metric/compare.hpp"
#include "metric/setup.hpp"

namespace numcheck::metric {

/// Sums over tiles of kTileSide rows and columns, aligned to multiples of it.
class TileSums {
 public:
  TileSums() = default;
  explicit TileSums(const op::Port& port);

  struct Place {
    std::int64_t matrix, row, column;  ///< in tiles
  };
  /// Takes tiles that lie side by side from `place` on, up to the output's last column, and leaves zeros.
  void take(std::array<double, 16>& sums, const Place& place);

  [[nodiscard]] std::int64_t count() const noexcept { return static_cast<std::int64_t>(sums_.size()); }
  [[nodiscard]] double at(std::int64_t index) const { return sums_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] std::int64_t elements_of(std::int64_t index) const;

 private:
  std::int64_t port_rows_ = 0, port_columns_ = 0;
  std::int64_t rows_ = 0, columns_ = 0;  ///< tiles along a side of a matrix
  std::vector<double> sums_;
};

/// How many elements of `rows` x `columns` may share an error.
[[nodiscard]] double sharing_of(const model::ErrorModel& model, std::int64_t rows, std::int64_t columns);

/// Correct elements of a group have no larger standard deviations s sd than those that the model predicts, with s = 2 to
/// leave room for predictions that fit some rows less well, or twice those that the rest of the output shows. For
/// independent normal errors z of variance s^2 the sum over n elements satisfies (Chernoff's bound)
///
///   P(sum z^2 - n s^2 a / c > s^2 t / c) <= e^-t,   a = -ln(1 - 2 c) / 2,   c = 1/4
///
/// which is the definition of `excess` and `unit` for FP32 outputs. In others only errors that move y across the boundary
/// between two numbers, a distance b away, can be seen, and then b is what is known of them. As
/// Q(x) (exp(c x^2) - 1) <= 0.1 with x = b / (s sd) and c = 0.4, and less than 0.007 for x > 5, such elements add
/// (b / sd)^2 - 0.1 s^2 / c if x <= 5 (kGroupReach, kGroupNearOffset), and where sd is not small against the distance of
/// two boundaries z^2 - a s^2 / c (kGroupWide, kGroupWideOffset).
///
/// Elements that share an error count as one: n, s^2 a / c and t are then for n / copies of them.
/// `squares` is the sum of z^2 over the whole output. Nothing is known of samples, of exact models, and of models that have the errors of each element.
[[nodiscard]] Groups largest_groups(const CompareInput& input, const Setup& setup, const PartialSums& rows,
                                    const PartialSums& columns, const TileSums& tiles, double squares);

}  // namespace numcheck::metric
