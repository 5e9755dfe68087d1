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
  /// `got` that is not finite, an |y| from the overflow threshold on, a yardstick that is NaN, or an A so large that an
  /// overflow may hide in a finite output. Once they have been removed, the rest is added unconditionally.
  bool (*norms)(const SegmentView& segment, const FormatConstants& format, bool specials_removed, Accumulators& sums);
  /// ULP statistics, the largest relative error, gates G1 to G4 and the foreign predicates as far as norms() does not
  /// cover them; returns the sums of a = w y e' and b = w y^2 over the segment.
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
