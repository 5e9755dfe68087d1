// The kernels of one instruction set. Include only from sources compiled per instruction set.
#pragma once

#include "metric/kernels.hpp"

namespace numcheck::metric::NUMCHECK_ISA {

constexpr double kNumpyRtol = 1e-7;  ///< numpy.testing.assert_allclose defaults: rtol 1e-7, atol 0

bool norms(const SegmentView& segment, const FormatConstants& format, bool specials_removed, Accumulators& sums);
RowSums gates(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
              Accumulators& sums, Histograms& histograms);

void lattice(const SegmentView& segment, const FormatConstants& format, const LatticeConstants& constants,
             LatticeSums& sums);

void terms(const SegmentView& segment, const ModelConstants& model, const TermConstants& constants, TermSums& sums);

bool exact(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model, ExactSums& sums,
           Histograms& histograms);

void scan(const double* expected, const float* bounds, std::size_t size, ScanSums& sums);

void opinions(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
              Accumulators& sums);

/// Exact evaluation of torch's and TransformerEngine's predicates for elements [begin, end) of a segment. Can be
/// skipped if no element's |e| exceeds min(1, largest excess so far) times its limit.
void check_torch(const SegmentView& segment, std::size_t begin, std::size_t end, const FormatConstants& format,
                 const ModelConstants& model, PredicateSums& sums);
void check_te(const SegmentView& segment, std::size_t begin, std::size_t end, const FormatConstants& format,
              const ModelConstants& model, PredicateSums& sums);
/// The plan's own predicate, and its limit / B, for elements [begin, end).
void add_plan(const SegmentView& segment, std::size_t begin, std::size_t end, const FormatConstants& format,
              const ModelConstants& model, Accumulators& sums);

}  // namespace numcheck::metric::NUMCHECK_ISA
