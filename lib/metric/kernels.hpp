// The comparison's loops, compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "metric/accumulators.hpp"

namespace numcheck::metric {

struct RowSums {
  double a, b;
};

inline constexpr int kSettled = 4;

/// Sums of an output all of whose elements are RN(y).
struct ExactSums {
  Accumulators sums;
  float largest;  ///< |y| in ulps
  /// |y| in ulps of some elements that neither raise an extreme nor enter the list of the worst any more: what all others with the
  /// same |y| do, too. Of 16- and 8-bit outputs.
  float settled[kSettled];
  int next_settled;
};

/// Of some expected values and their bounds.
struct ScanSums {
  std::int64_t zeros;
  double largest;       ///< finite |y|
  float largest_bound;  ///< of those that are numbers
  bool unknown_bound;   ///< one is NaN
};

struct Kernels {
  /// Norms of got - y, and numpy's mismatches. Returns false and adds nothing if the segment has special elements: a
  /// non-finite got, |y| >= special_from, a NaN yardstick, or an A so large that a finite output may hide an overflow.
  /// With `specials_removed`, adds all elements without this check and without numpy's mismatches.
  bool (*norms)(const SegmentView& segment, const FormatConstants& format, bool specials_removed, Accumulators& sums);
  /// Other tools' predicates (not the plan's) for a segment that norms() rejected, including its special elements.
  void (*opinions)(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
                   Accumulators& sums);
  /// ULP statistics, the largest relative error, gates G1 to G4, and what norms() leaves out of the predicates unless
  /// they have already been counted. Returns the sums of a = w y e' and b = w y^2 over the segment.
  RowSums (*gates)(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
                   Accumulators& sums, Histograms& histograms);
  /// The lattice gate, of an FP32 output.
  void (*lattice)(const SegmentView& segment, const FormatConstants& format, const LatticeConstants& constants,
                  LatticeSums& sums);
  /// Errors and values of sums against the squares and magnitudes of their terms; gates() has the largest errors.
  void (*terms)(const SegmentView& segment, const ModelConstants& model, const TermConstants& constants,
                TermSums& sums);
  /// norms() and what gates() adds that a report shows of an output whose elements all are RN(y), if its model has no A and no
  /// absolute parts: see exact_pass.hpp. Returns false if one is not, bit for bit, or needs a second look; the sums are of no use
  /// then. `magnitude` and `deviation` of the segment are zeros.
  bool (*exact)(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model, ExactSums& sums,
                Histograms& histograms);
  /// Of any number of elements; `bounds` null: there are none.
  void (*scan)(const double* expected, const float* bounds, std::size_t size, ScanSums& sums);
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

/// The kernels for core::active_isa().
[[nodiscard]] const Kernels& kernels() noexcept;

}  // namespace numcheck::metric
