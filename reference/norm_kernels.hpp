// The forward normalisations' formulas on several rows, or several columns, at a time, compiled once per instruction set; all
// sets produce the same bits as norm_rows.hpp's, one number at a time.
// Plain types only: nothing here may emit a symbol that another translation unit shares.
#pragma once

#include <cstddef>

namespace numcheck::reference {

/// tolerance::Tracked of several rows.
struct TrackedLanes {
  static constexpr std::size_t kMost = 8;
  double y[kMost];
  double b[kMost];
  double v[kMost];
};

/// What is asked of a row before its sums are formed.
struct RowExtent {
  double largest[TrackedLanes::kMost];   ///< of the magnitudes
  double absolute[TrackedLanes::kMost];  ///< their sum
};

/// What a column is multiplied by, and what is added: tolerance::Tracked without a variance of its own.
struct NormColumns {
  const double* factor;
  const double* factor_bound;
  const double* factor_variance;
  const double* beta;  ///< null: RMSNorm
};

/// Where a row of outputs goes; null: not kept (magnitude and deviation together).
struct NormRow {
  double* value;
  float* magnitude;
  float* deviation;
  float* terms;
};

/// Numbers of one row, each with its error.
struct NormStatistics {
  double mean[3], rsigma[3];  ///< y, b, v
  double absolute;            ///< mean magnitude of x
};

struct NormKernels {
  std::size_t lanes;  ///< rows that are taken at a time
  /// Interleaves that many rows of `hidden` numbers: out[j lanes + l] = x[l hidden + j].
  void (*interleave)(const double* x, std::size_t hidden, double* out);
  /// The sum of each row, as RowSum has it, and its extent. `values_only`: without errors.
  void (*sums)(const double* interleaved, std::size_t hidden, bool values_only, TrackedLanes& sum, RowExtent& extent);
  /// The sum of (x - mean)^2, or of x^2 (`mean` null), as tolerance::Sum has it, and the extent of x.
  void (*squares)(const double* interleaved, std::size_t hidden, const TrackedLanes* mean, bool values_only,
                  TrackedLanes& sum, RowExtent& extent);
  /// y of one row. False, and nothing that is left means anything, if a factor of a product is so small that the order in which
  /// three are multiplied decides what underflows.
  bool (*outputs)(const double* x, std::size_t hidden, const NormStatistics& row, const NormColumns& columns,
                  const NormRow& out);
};

namespace baseline {
[[nodiscard]] const NormKernels& norm_kernels() noexcept;
}
namespace avx2 {
[[nodiscard]] const NormKernels& norm_kernels() noexcept;
}
namespace avx512 {
[[nodiscard]] const NormKernels& norm_kernels() noexcept;
}

/// Those of the active instruction set.
[[nodiscard]] const NormKernels& norm_kernels() noexcept;

}  // namespace numcheck::reference
