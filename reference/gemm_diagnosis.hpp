// What explains the bits of a product that is not as precise as it should be.
#pragma once

#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// Was the product rounded to D's format before C was added? For a 16-bit D = alpha op(A) op(B) + beta C with nothing
/// behind it, of the elements where RN(RN(y - beta C) + beta C) differs from RN(y): the share that has the former bits.
/// Nothing where fewer than 32 elements differ. The product of the device has errors of its own, so that a share near 1
/// says yes, one near 0 no.
[[nodiscard]] std::vector<op::Finding> gemm_diagnosis(const op::FindingRequest& request);

}  // namespace numcheck::reference
