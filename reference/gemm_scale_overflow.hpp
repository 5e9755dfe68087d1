// Sums of codes that overflow between the scales of their row and their column.
#pragma once

#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// Libraries have been seen to multiply a sum of codes by one operand's scale and then by the other's, where rows or blocks have
/// scales of their own: a sum s becomes infinite if s sA or s sB does, though s sA sB need not (an H200, cuBLASLt 13.1.0, scales
/// of 2^127 beside 2^-149). Of the elements that are NaN, infinite or finite and should be something else, the finding has the share
/// whose sums overflow so, and that are the infinity, or the NaN, that this leaves.
[[nodiscard]] std::vector<op::Finding> scale_overflow(const op::FindingRequest& request);

}  // namespace numcheck::reference
