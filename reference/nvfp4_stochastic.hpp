// Stochastic rounding to E2M1: which codes a device may draw, and how often it rounds away from zero.
#pragma once

#include <span>
#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// Gates of codes that a device draws, of both layouts:
///
///   impossible codes     elements with another code than those of the two numbers next to v = RN32(x factor)
///   share rounded up     sum of u - p of many groups of elements, over what independent draws exceed by chance
///   correlated draws     sum of (u_i - p_i) (u_(i+L) - p_(i+L)) for some distances L, over the same
///
/// With |v| between the neighbours a and b, f = (|v| - a) / (b - a); u is 1 if the code is that of b, else 0; and p, the chance of
/// that, is floor(256 f) / 256, as eight random bits make it. The groups are all elements, those of a sign, those at one place of
/// their block, those between two neighbours whose f is in one sixteenth, and regions: those of a line (a row, or a column of
/// transposed codes), those at one position of all lines, and those of 32 x 32. Of regions also the sum of +-(u - p), + where
/// p >= 1/2: one of some 200 elements that is rounded to nearest exceeds its limit. Limits are Bernstein's and Freedman's
/// (chance.hpp) for all groups together: each gate fails once in 1e7 right results at most, per layout.
/// Source: TransformerEngine common/util/ptx.cuh, stochastic_round_fp4_e2m1.
[[nodiscard]] std::vector<op::Finding> stochastic_findings(const op::FindingRequest& request);

/// The bytes of which a code is neither of the two.
[[nodiscard]] std::vector<op::ImpossibleDraw> impossible_codes(const op::FindingRequest& request);

[[nodiscard]] std::span<const op::OwnGate> stochastic_gates();

}  // namespace numcheck::reference
