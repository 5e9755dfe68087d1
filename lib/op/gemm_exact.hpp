// Integers for the exact leg of `gemm`.
#pragma once

#include "op/gemm.hpp"

namespace numcheck::op {

/// Chooses integers so that |alpha| sum |a b| + |beta c| + |bias|, counted in units of the finest fraction involved,
/// stays below 2^bits: bits is the smaller of the accumulator's (24; 11 for FP16 accumulation; 14 for fast FP8
/// accumulation; promoted FP8: 14 within 128 products and 24 in total) and the output's significand. Then every
/// summation order yields the same bits. Promoted FP8 products with an FP32 output take the second form
/// (positive integers 4..15, k >= 256), which is exact only if promotion happens every 128 products.
/// Source: trust.md section 1; accumulator widths from "Accurate Models of NVIDIA Tensor Cores", arXiv 2512.07004.
[[nodiscard]] ExactPlan gemm_exact_plan(const Params& params, const Mode& mode);

}  // namespace numcheck::op
