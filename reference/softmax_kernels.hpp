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

inline constexpr std::size_t kSumChains = 8;  ///< of sums that do not wait for each other

/// A compensated sum: what a sum of two loses is exact without asking which is larger (Knuth).
struct SumChains {
  double sum[kSumChains], lost[kSumChains];
};

/// Of a row of outputs and the values that they should have. Element j is in chain j % kSumChains, but for those of the last
/// columns, which fill no group: these are in the first.
struct SoftmaxRowChains {
  SumChains got, expected;
  double most[kSumChains];     ///< what roundings of the elements leave in their sum, at most
  double squares[kSumChains];  ///< ulps that elements other than 0 may be rounded in, squared
  bool determined;             ///< all bounds are below what they were compared with
};

/// The numbers of an output's format: core::UlpSize.
struct UlpsOf {
  double largest, smallest, unit;
};

struct SoftmaxKernels {
  std::size_t lanes;  ///< rows that are taken at a time
  ScoreExtent (*extent)(const double* x, std::size_t columns, double scale);
  /// The sums of exp(t - maximum) of interleaved rows (NormKernels::interleave), as tolerance::Sum has them.
  void (*sums)(const double* interleaved, std::size_t columns, double scale, const double* maximum, const double* bound,
               TrackedLanes& sum);
  /// y of one row.
  void (*outputs)(const double* x, std::size_t columns, double scale, const SoftmaxStatistics& row, const NormRow& out);
  /// y of one row without errors.
  void (*values)(const double* x, std::size_t columns, double scale, double maximum, double* value);
  /// `bound` null: there are none, and all is determined.
  void (*row_sums)(const double* got, const double* expected, const float* bound, std::size_t columns,
                   const UlpsOf& ulps, double flush, double undetermined, SoftmaxRowChains& row);
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
