// Kernels that take subnormal numbers for zero.
#pragma once

#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// Libraries have been seen to flush subnormal FP32 numbers, of inputs and results, to zero. A result is wrong if it differs from
/// what is expected by more than its bound and its format's rounding, or is finite where it is not or the reverse; it is
/// explained if it is what the formula yields on inputs without their subnormal numbers, or if flushing anywhere in the formula,
/// evaluated on tolerance::Flushable, may cost that much. Adds a finding, of numbers and of NaN and infinities each, for every
/// output of which 90 % of the wrong elements are explained; of numbers only if those that no flush touches are right, each and
/// together.
/// `values`: the op's; `losses`: with what flushing may cost in place of magnitudes.
void explain_flushes(const op::FindingRequest& request, op::Values (*values)(const op::ReferenceRequest&),
                     op::Values (*losses)(const op::ReferenceRequest&), std::vector<op::Finding>& findings);

}  // namespace numcheck::reference
