// Faults in the scales of rows and blocks of a simulated product's operands.
#pragma once

#include "kernels/sim/gemm.hpp"

namespace numcheck::kernels::sim {

/// A's scales are those of the block before along k.
void misindex_blocks(const SimGemm& gemm, model::GemmTask& task);
/// B's are those of the next column, or block of columns.
void misindex_columns(const SimGemm& gemm, model::GemmTask& task);
/// A's, stored block by block, are read row by row.
void transpose_scales(const SimGemm& gemm, model::GemmTask& task);
/// B's are 1.
void leave_scales_out(const SimGemm& gemm, model::GemmTask& task);
/// A's have the bits of BF16.
void round_scales(const SimGemm& gemm, model::GemmTask& task);

}  // namespace numcheck::kernels::sim
