// What explains the bits of a product that is not as precise as it should be.
#pragma once

#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// Was a part of Z = alpha op(A) op(B) + beta C + bias rounded to D's format, BF16 or FP16, before the rest was added?
/// By hypothesis, with RN to D's format and y the exact result:
///
///   op::kProductRounded   RN(RN(y - beta C) + beta C)
///   op::kSumRounded       RN(RN(y - bias) + bias)
///
/// Of the elements where that differs from RN(y), the share that has the former bits; under relu, of elements above 0.
/// No finding where fewer than 32 elements differ, and none behind gelu. The product of the device has errors of its
/// own, so that a share near 1 says yes, one near 0 no.
[[nodiscard]] std::vector<op::Finding> gemm_diagnosis(const op::FindingRequest& request);

}  // namespace numcheck::reference
