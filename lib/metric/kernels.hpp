// The comparison's loops, compiled once per instruction set.
#pragma once

#include <cstddef>

#include "metric/accumulators.hpp"

namespace numcheck::metric {

struct RowSums {
  double a, b;
};

struct Kernels {
  /// Norms of got - y, and numpy's mismatches. Returns false, and adds nothing, if the segment has special elements: a
  /// got that is not finite, an |y| from special_from on, a yardstick that is NaN, or an A so large that an overflow may
  /// hide in a finite output. Once they were removed, what remains is added as it is, without numpy's mismatches.
  bool (*norms)(const SegmentView& segment, const FormatConstants& format, bool specials_removed, Accumulators& sums);
  /// The foreign predicates, but for the plan's own, of a segment that norms() refused, with its special elements.
  void (*opinions)(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
                   Accumulators& sums);
  /// ULP statistics, the largest relative error, gates G1 to G4 and what norms() leaves of the foreign predicates
  /// unless they were counted before;
  /// returns the sums of a = w y e' and b = w y^2 over the segment.
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
