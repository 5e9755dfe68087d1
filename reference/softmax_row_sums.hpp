// Probabilities of a row sum to 1: what a delivered softmax says about its own denominator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// "row sum": the largest |sum of delivered y - sum of expected y| of a row of `columns` elements over its own limit, a
/// gate with the limit 1. Errors of exponentials cancel between numerator and denominator, so that what remains is
///
///   limit = u32 (n + 12 + 4.7 ln n) s + (1 - s) sum_j B_j + sum_j (ulp_out(y_j) / 2 + 2^-126)
///
///   n = columns, u32 = 2^-24, s = sum_j y_j
///
/// s is less than 1 where masked scores share the denominator: the errors B of exponentials cancel only as far as numerators and
/// denominators are the same (a score of 10^4 is off by 5e-4, and so is the sum of what is left beside a masked one).
/// (n - 1) u: sum of n positive numbers in any order; 5 u: reciprocal (2 ulp) and product; the rest: kernels that
/// evaluate exponentials twice (2 (4 + 2.35 d) u, mean |d| <= ln n). "row sum spread": rms over rows of the same
/// difference over its prediction for independent roundings, sqrt((0.18 n / 3 + 16 / 3) u32^2 + sum_j ulp_j^2 / 12);
/// reported only, because roundings of equal numbers are equal. Rows that are zero, not finite, or not determined do
/// not count. Source: tensor_core_numerics section 5.5.
[[nodiscard]] std::vector<op::Finding> softmax_row_sums(const op::FindingRequest& request, std::string_view port,
                                                        std::size_t columns, core::Dtype format);

/// The same of rows that are not all there at a time. `port` must outlive it.
[[nodiscard]] std::unique_ptr<op::RowFindings> softmax_row_sums(std::string_view port, std::int64_t rows,
                                                                std::size_t columns, core::Dtype format);

}  // namespace numcheck::reference
