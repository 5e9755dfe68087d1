// Faults in the scales of rows and blocks of a simulated product's operands.
#pragma once

#include "kernels/sim/gemm.hpp"

namespace numcheck::kernels::sim {

void misindex_blocks(const SimGemm& gemm, model::GemmTask& task);
void misindex_columns(const SimGemm& gemm, model::GemmTask& task);
void transpose_scales(const SimGemm& gemm, model::GemmTask& task);
void leave_scales_out(const SimGemm& gemm, model::GemmTask& task);
void round_scales(const SimGemm& gemm, model::GemmTask& task);

}  // namespace numcheck::kernels::sim
