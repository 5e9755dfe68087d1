// Which products of a sum are missing, counted twice, or made of other elements.
#pragma once

#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// Explains a wrong product by one range R of k. With u(t) = alpha sA sB a(i,t) b(t,j) and the residual r = d - y of the
/// elements that are furthest off, a hypothesis predicts
///
///   missing          r = - sum over R of u(t)
///   counted twice    r = + sum over R of u(t)
///   read from        r =   sum over R of (u'(t) - u(t)), where u' has the next row of A, the next column of B, or the
///   elsewhere              elements of A, B or both that lie 8, 16, 32, 64 or 128 earlier in k
///
/// and explains the share 1 - |r - prediction|^2 / |r|^2. Ends of R are found on a grid of k and refined to single
/// elements. The finding op::kRangeOfK names the best hypothesis. There is none if
///
///   - it explains less than 60 % (all of k: 90 %), or, of n elements, less than halfway from what the best of 10^5
///     random hypotheses explains to all; products with other faults (operands of less precision, a missing C, swapped
///     rows) are explained to at most 50 %
///   - a wrong scale of the product explains as much, or as many products elsewhere in k do
///   - the error is that of fewer than 6 elements, or there is a gelu
///
/// Where all products of an element are equal, it says only how many are missing or counted twice.
[[nodiscard]] std::vector<op::Finding> gemm_k_ranges(const op::FindingRequest& request);

}  // namespace numcheck::reference
