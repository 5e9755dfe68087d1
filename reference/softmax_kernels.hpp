// Softmax of several rows, or several columns, at a time, compiled once per instruction set. All sets produce the same bits, and
// the same numbers as softmax_row.hpp but for exponentials, which may differ by an ulp of a double.
// Plain types only: nothing here may emit a symbol that another translation unit shares.
#pragma once

#include <cstddef>

#include "reference/norm_kernels.hpp"

namespace numcheck::reference {

/// Of a row of scores t = x scale: the largest one, and the largest magnitude; both NaN if a score is.
struct ScoreExtent {
  double largest, magnitude;
};

/// What a row's elements are computed from: its maximum with the bound of its error, and 1 / sum exp(t - maximum).
struct SoftmaxStatistics {
  double maximum, bound;
  double factor[3];  ///< y, b, v
};

struct SoftmaxKernels {
  std::size_t lanes;  ///< rows that are taken at a time
  ScoreExtent (*extent)(const double* x, std::size_t columns, double scale);
  /// The sums of exp(t - maximum) of interleaved rows (NormKernels::interleave), as tolerance::Sum has them.
  void (*sums)(const double* interleaved, std::size_t columns, double scale, const double* maximum, const double* bound,
               TrackedLanes& sum);
  /// y of one row.
  void (*outputs)(const double* x, std::size_t columns, double scale, const SoftmaxStatistics& row, const NormRow& out);
};

namespace baseline {
[[nodiscard]] const SoftmaxKernels& softmax_kernels() noexcept;
}
namespace avx2 {
[[nodiscard]] const SoftmaxKernels& softmax_kernels() noexcept;
}
namespace avx512 {
[[nodiscard]] const SoftmaxKernels& softmax_kernels() noexcept;
}

/// Those of the active instruction set.
[[nodiscard]] const SoftmaxKernels& softmax_kernels() noexcept;

}  // namespace numcheck::reference
