// What attention's gradients may be too large or too small by as a whole.
#pragma once

#include <string_view>
#include <vector>

#include "model/error_model.hpp"
#include "op/reference.hpp"

namespace numcheck::tolerance {

/// The slope of e on y, over the elements of output dq, dk or dv weighted as gate G3 does, that rows have by themselves:
///
/// - Weights that are all rounded alike: with M the relative shift of a row by rounding p w to the format of products
///   (GradientFact::shift), |sum y^2 M / V| / sum y^2 / V; of |M| where p w may be scaled before or after it is rounded: dq
///   and dk but for FP8, dv with dropout. Where inputs are structured, M is u_P at least.
/// - Rows of a single pair add half the unit roundoff of the output: if p w is the same number in all of them, products are
///   rounded to the output in one direction more often than in the other (times 255 / 256, 1 - x is lost of 8-bit
///   significands x).
/// - dp is truncated towards zero, by the part sqrt(c_V) of itself, but D is not: |sum y K P / V| sqrt(c_V) / sum y^2 / V for
///   dq and dk. Where dp and D cancel, y is smaller than K P by the same factor in all rows (one key, a dropout scale that
///   its format does not hold). Where products of do and v are all alike (GradientFact::equal_values), half of the additions
///   of dp, and of D, err by the same u at most, in all rows: d_v u more than sqrt(c_V).
///
/// - Declared roundings (attention_bwd_rounding.hpp): weights and dp that are rounded alike, these as a further part of dp; and
///   5 standard deviations of what the rows of each head of dk and dv have in common, heads being independent.
///
/// 0 for dbias, and where nothing is rounded.
[[nodiscard]] double slope_of_rows(const model::ModelRequest& request, const op::Values& values, std::string_view port);

/// The same of each row alone, without signs: model::ErrorModel::row_slopes.
[[nodiscard]] std::vector<float> row_slopes(const model::ModelRequest& request, const op::Values& values,
                                            std::string_view port);

/// That which comes from FP8 scores of one sign, whose sums are all truncated: the root mean square of T over rows
/// (GradientFact::score_mean) times the slope of such a sum. 0 in other modes.
[[nodiscard]] double slope_of_truncated_scores(const model::ModelRequest& request, const op::Values& values,
                                               std::string_view port);

}  // namespace numcheck::tolerance
