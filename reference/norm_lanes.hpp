// The forward normalisations of several rows at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/parallel.hpp"
#include "op/reference.hpp"
#include "reference/norm_kernels.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {

/// Computes y, the statistics and their errors like the formulas of one row, bit for bit, if all numbers are so tame that nothing
/// overflows or underflows. The caller takes the other rows one by one.
class NormLanes {
 public:
  /// `beta` null: RMSNorm.
  NormLanes(const op::Operand& x, std::span<const Tracked> factors, const op::Operand* beta, double epsilon);

  /// How many rows are taken at a time.
  [[nodiscard]] std::size_t lanes() const { return kernels_.lanes; }

  struct Statistics {
    Tracked mean, rsigma;
    double absolute = 0;  ///< mean magnitude of x
  };
  /// Calls tame(row, statistics) for every row whose numbers are, and one(row) for the others and for those for which tame
  /// returns false; in parallel.
  template <class Tame, class One>
  void for_each_row(const Tame& tame, const One& one) const {
    const auto rows = static_cast<std::size_t>(x_.rows);
    core::parallel_for((rows + lanes() - 1) / lanes(), [&](std::size_t group) {
      const std::size_t first = group * lanes(), last = std::min(rows, first + lanes());
      const auto known = statistics(first);
      for (std::size_t i = first; i < last; ++i) {
        if (!known || !tame(i, (*known)[i - first])) {
          one(i);
        }
      }
    });
  }

  /// Sets y of a row. False if the order of products decides what underflows; then it is to be set again.
  [[nodiscard]] bool set(std::size_t row, const Statistics& statistics, TrackedOutput& y) const;

 private:
  /// Of rows [first, first + lanes()); nothing if one of them is not tame.
  [[nodiscard]] std::optional<std::vector<Statistics>> statistics(std::size_t first) const;

  const op::Operand& x_;
  double epsilon_;
  const NormKernels& kernels_;
  bool tame_ = true;  ///< factors and beta are
  std::vector<double> factor_, factor_bound_, factor_variance_;
  const double* beta_;
};

}  // namespace numcheck::reference
