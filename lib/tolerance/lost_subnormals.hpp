// What truncating tensor cores lose of sums that are subnormal.
#pragma once

#include "model/arithmetic.hpp"
#include "model/error_model.hpp"
#include "op/gemm.hpp"

namespace numcheck::tolerance {

/// Each of the T steps whose sum is subnormal is truncated to a multiple of 2^-149: half of that is lost on average, always
/// toward zero, so that the losses of a sum of one sign add up to T 2^-150:
///
///   V += (T 2^-150 scale)^2        slope: T 2^-150 sum |y| / sum y^2, over up to 16 outputs, spread over rows and columns
///
/// `scale`: |alpha sA sB|.
void add_lost_subnormals(const model::ModelRequest& request, const op::GemmParams& params,
                         const model::Arithmetic& arithmetic, double scale, model::ErrorModel& model);

}  // namespace numcheck::tolerance
