// Whether the bits of a product are those of roundings that its library declares.
#pragma once

#include "op/replay.hpp"

namespace numcheck::reference {

/// Computes up to 4096 elements from all over D again (fewer of long sums, at least 256), in doubles, but for the declared
/// roundings. How k is cut and in which order slices, C and bias are added is not declared: all plausible ways are tried
/// (gemm_slices.hpp, Scheme) on some elements, and the best few on all of them. Where the device's own sums may be off by
/// more than their distance to the boundary between two numbers, other bits are expected, too, and counted. Of elements whose
/// rows or columns are equal, and which have the same bits, only one counts, since what one does they all do:
///
///   expected   sum of the probabilities that an element is rounded otherwise
///   other      elements with other bits than predicted, of n
///   telling    elements of which one rounding at the end would predict other bits
///
/// The roundings are shown if one way has
///
///   - other <= 3 expected + 6 sqrt(3 expected) + n / 100, and no more than half of those that are not expected; where most
///     elements repeat others, so that each stands for a row or a column and all may share one error, of those alone of which other
///     bits are improbable (below 1/3000), no more than 3 times what is expected reaches once in 100 times
///   - at least 80 % of the telling elements as predicted, and these are more than chance: with bits(x) = x + log2 binom(n, x),
///     bits(telling as predicted) - bits(other) - log2(ways that predict different bits) >= 1. If none is telling, no
///     element may have other bits, and of half of them one number must be predicted, not an interval; nothing is telling of
///     tanh, whose error is an interval; nor do the roundings explain any element then, the farthest included
///   - no element, of those and of ReplayRequest::farthest, that is further off than the roundings make any (Prediction::astray)
///   - no row, column, 64 x 64 tile or matrix with so many others that chance would not have it in 10^8 of them (3 expected, and
///     3 of a thousand elements)
///
/// What an FP32 output shows of tanh is that no element is further off than it explains.
[[nodiscard]] op::Replay gemm_replay(const op::ReplayRequest& request);

}  // namespace numcheck::reference
