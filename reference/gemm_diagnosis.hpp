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
/// Measures which share of the elements where that differs from RN(y) has the bits of the former; with relu, only of
/// elements above 0. No finding if fewer than 32 elements differ, and none with gelu. The device's product has errors
/// of its own, so a share near 1 means yes, and one near 0 means no.
[[nodiscard]] std::vector<op::Finding> gemm_diagnosis(const op::FindingRequest& request);

}  // namespace numcheck::reference
