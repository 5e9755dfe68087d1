// Declarations of one instruction set's loops, for its table and for each other. Include only from sources compiled per
// instruction set.
#pragma once

#include "metric/kernels.hpp"

namespace numcheck::metric::NUMCHECK_ISA {

constexpr double kNumpyRtol = 1e-7;  ///< numpy.testing.assert_allclose defaults: rtol 1e-7, atol 0

bool norms(const SegmentView& segment, const FormatConstants& format, bool specials_removed, Accumulators& sums);
RowSums gates(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
              Accumulators& sums, Histograms& histograms);

void opinions(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
              Accumulators& sums);

/// torch's and TransformerEngine's predicates, exactly, of the elements [begin, end) of a segment. Each may be left out
/// where no element's |e| exceeds min(1, the largest excess so far) times its limit.
void look_at_torch(const SegmentView& segment, std::size_t begin, std::size_t end, const FormatConstants& format,
                   const ModelConstants& model, PredicateSums& sums);
void look_at_te(const SegmentView& segment, std::size_t begin, std::size_t end, const FormatConstants& format,
                const ModelConstants& model, PredicateSums& sums);
/// The plan's own predicate, and its limit over B, of the elements [begin, end).
void add_plan(const SegmentView& segment, std::size_t begin, std::size_t end, const FormatConstants& format,
              const ModelConstants& model, Accumulators& sums);

}  // namespace numcheck::metric::NUMCHECK_ISA
