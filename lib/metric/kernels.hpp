// The comparison's loops, compiled once per instruction set.
#pragma once

#include <cstddef>

#include "metric/accumulators.hpp"

namespace numcheck::metric {

struct RowSums {
  double a, b;
};

struct Kernels {
  /// True if any got is not finite, any |y| reaches the overflow threshold, a yardstick is NaN, or A is
  /// so large that an overflow may hide in a finite output.
  bool (*is_special)(const SegmentView& segment, const FormatConstants& format);
  /// Norms of got - y.
  void (*norms)(const double* got, const double* y, std::size_t size, ErrorSums& sums);
  /// torch, numpy, TransformerEngine and the plan's own predicate.
  void (*opinions)(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
                   Accumulators& sums);
  /// ULP statistics and gates G1 to G4; returns the sums of a = w y e' and b = w y^2 over the segment.
  RowSums (*gates)(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
                   Accumulators& sums, Histograms& histograms);
};

namespace baseline {
extern const Kernels kKernels;
}
namespace avx2 {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels;
}

/// Those of core::active_isa().
[[nodiscard]] const Kernels& kernels() noexcept;

}  // namespace numcheck::metric
