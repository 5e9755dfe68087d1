// What is lost where an operand is scaled by alpha before it is multiplied.
#pragma once

#include "tolerance/gemm_request.hpp"

namespace numcheck::tolerance {

/// Some of cuBLASLt's algorithms multiply alpha into an operand, as the reference BLAS does. In FP32 that costs no more than the
/// roundings of the sum, but for numbers that it makes subnormal: they are rounded to a multiple of `step`, 2^-149 in FP32 and
/// 2^-136 in TF32, and k terms lose up to k step / 2 times the other operand's largest number.
///
/// Measured on an H200 with cuBLASLt 13.1: subnormals times alpha = -0.5 lose their last bit (algorithm 11, FP32).
void add_alpha_first(const GemmRequest& g, model::ErrorModel& model);

/// Numbers below it may become 0 when they are multiplied by alpha first; 0: none may.
[[nodiscard]] double vanishes_below(const model::ModelRequest& request, double alpha);

}  // namespace numcheck::tolerance
