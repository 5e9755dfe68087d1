// Declarations of one instruction set's loops, for its table. Include only from sources compiled per instruction set.
#pragma once

#include "metric/kernels.hpp"

namespace numcheck::metric::NUMCHECK_ISA {

bool is_special(const SegmentView& segment, const FormatConstants& format);
void norms(const double* got, const double* expected, std::size_t size, ErrorSums& sums);
void opinions(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
              Accumulators& sums);
RowSums gates(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
              Accumulators& sums, Histograms& histograms);

}  // namespace numcheck::metric::NUMCHECK_ISA
