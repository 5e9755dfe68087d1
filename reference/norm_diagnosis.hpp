// What may explain statistics of a norm that failed a gate.
#pragma once

#include <span>
#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// A row with infinities has no variance: x - mu is infinity - infinity, so rsigma is NaN. Libraries have been seen to store
/// 0, the reciprocal of an infinite deviation. The finding has the share of the rows whose rsigma is wrong that have
/// infinities, no NaN, and an rsigma of 0.
/// Of rows of one element, libraries have been seen to take 0 for the variance even where the element is infinite or NaN: the
/// finding then has the share of such rows with an rsigma of 1 / sqrt(epsilon).
[[nodiscard]] std::vector<op::Finding> diagnose_layernorm(const op::FindingRequest& request);

/// 1 / sqrt(infinity) is 0, so rsigma of a row with infinities is 0, and so is y but for the infinities themselves. Kernels have
/// been seen to leave NaN in all of such rows. A finding of each output: the share of what is wrong that is in such rows.
[[nodiscard]] std::vector<op::Finding> diagnose_rmsnorm(const op::FindingRequest& request);

/// Gradients of rows whose saved rsigma has a cube beyond FP32's range (above 7e12; with epsilon = 1e-30 it may be 1e15): kernels that
/// form rsigma^3 have been seen to leave NaN and infinities in dx where it is finite. The finding has the share of what is wrong
/// that is in such rows.
void explain_cubes(const op::FindingRequest& request, std::vector<op::Finding>& findings);

/// True if there are infinities, and no NaN.
[[nodiscard]] bool has_only_infinities(std::span<const double> row);

}  // namespace numcheck::reference
