// gelu of a sum that the output's format does not hold.
#pragma once

#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// Libraries have been seen to round Z = alpha op(A) op(B) + beta C + bias to D's format before gelu. A Z below its smallest
/// number becomes -infinity, and gelu(-infinity) in the form z (1 + tanh(...)) / 2 is NaN, where gelu(Z) is -0. Of the
/// elements that are NaN, infinite or finite and should be something else, the finding has the share that are NaN for that reason.
[[nodiscard]] std::vector<op::Finding> gelu_overflow(const op::FindingRequest& request);

}  // namespace numcheck::reference
