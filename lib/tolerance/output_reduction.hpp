// Error models of products of which a part is rounded to the output's own format before the last addition.
#pragma once

#include "tolerance/error_model.hpp"

namespace numcheck::tolerance {

/// The model of the same product when each of `slices` partial sums is rounded to the output's format, and their
/// running sum again after each addition (cuBLASLt reduction schemes OUTPUT_TYPE and INPLACE, in any order). With u the
/// unit roundoff of the output's format and s_t the running sums:
///
///   B + u (slices + 1) A,    V + 0.18 u^2 [ (S2 + y^2) + slices (S2/6 + y^2/3) ]
///
/// the first bracket being the slices' own rounding, the second sum_t s_t^2 of slices that are like random ones (the
/// bridge formula that the FP32 chain uses). 0.18 u^2 is the variance of rounding a log-uniform value to nearest. Where
/// other terms of y may cancel the sum, y^2 is y^2 + (cancelled A)^2.
[[nodiscard]] ErrorModel with_output_reduction(ErrorModel model, int slices);

/// The model of the same product when it is rounded to the output's format before C is added, as by a reduction that
/// adds to D in memory (measured: cuBLASLt 13.1 on sm_90, beta 1, C and D one memory, not split). P = y - beta C:
///
///   B + u A,    V + 0.18 u^2 (S2 + y^2)
///
/// because |P| <= A, and P^2 is about S2 where C cancels P (S2 holds the square of C too), else about y^2.
[[nodiscard]] ErrorModel with_rounded_product(ErrorModel model);

}  // namespace numcheck::tolerance
