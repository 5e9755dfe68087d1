// What may explain statistics of a norm that failed a gate.
#pragma once

#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// A row with infinities has no variance: x - mu is infinity - infinity, so rsigma is NaN. Libraries have been seen to store
/// 0, the reciprocal of an infinite deviation. The finding has the share of the rows whose rsigma is wrong that have
/// infinities, no NaN, and an rsigma of 0.
/// Of rows of one element, libraries have been seen to take 0 for the variance even where the element is infinite or NaN: the
/// finding then has the share of such rows with an rsigma of 1 / sqrt(epsilon).
[[nodiscard]] std::vector<op::Finding> diagnose_layernorm(const op::FindingRequest& request);

}  // namespace numcheck::reference
