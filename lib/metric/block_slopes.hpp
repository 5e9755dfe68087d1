// Slopes of single blocks of rows and single heads: a scale that is wrong there is little in the whole output.
#pragma once

#include "metric/compare.hpp"
#include "metric/setup.hpp"

namespace numcheck::metric {

/// Of an output of heads, a block is kBlockRows rows of one head. With e the error, in 16- and 8-bit formats got - RN(y), because
/// what rows of a single key leave to round may be the same part of all their elements; w = 1 / V, V the predicted second moment
/// of e: V_arith and, in these formats, f ulp^2, f = min(1/6, max(1/12, E|e_arith| / ulp)); and r_i the row's part of sum w y^2:
///
///   slope       = sum w y e / sum w y^2
///   slack       = (sum r_i s_i + |sum w y d|) / sum w y^2 + model.slope_slack + 1.5 times the model's truncation
///   alike^2     = repeats (sum over rows of max(sum over the row of |w y| sqrt(V_arith), |w y| p ulp)^2 +
///                          sum f (w y ulp)^2) / (sum w y^2)^2
///   independent = 1 / sqrt(sum w y^2), times sqrt(repeats)
///   scatter^2   = sum over rows of (a_i - slope r_i)^2 / (sum w y^2)^2, a_i the row's part of sum w y e, times repeats
///   limit       = slack + min(lambda alike, max(t(lambda, rows) scatter, lambda independent))
///
/// that is, errors of a row's channels may be one, but rows are independent of one another but for s, CompareInput::row_slopes.
/// p is the chance that y is not rounded to RN(y), and d what it then changes on average, for errors as predicted or kFlipSpread
/// times as large: values that lie on boundaries are all rounded to one side if the row's error is one. (Together they do no more
/// than if all did that can: p ulp is less where lambda times it is more than that.) t is Student's.
/// `repeats`: how many elements are rounded as one, repeats.hpp. Nothing is known without row_slopes, of samples and of exact
/// models.
[[nodiscard]] BlockSlope block_slope(const CompareInput& input, const Setup& setup, double repeats);

inline constexpr std::int64_t kBlockRows = 64;

}  // namespace numcheck::metric
