// Kernels that take subnormal numbers for zero.
#pragma once

#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// Libraries have been seen to flush subnormal FP32 numbers, of inputs and results, to zero. Elements are wrong if they differ
/// from what is expected by more than 2^-6 of it, or are finite where it is not or the reverse; they are explained if they are
/// not wrong beside the reference of inputs without subnormal numbers. Adds a finding, of numbers and of NaN and infinities
/// each, for every output of which 90 % of the wrong elements are explained.
/// `values`: the op's.
void explain_flushes(const op::FindingRequest& request, op::Values (*values)(const op::ReferenceRequest&),
                     std::vector<op::Finding>& findings);

}  // namespace numcheck::reference
