// Softmax of several rows at a time.
#pragma once

#include <bitset>
#include <cstddef>
#include <span>

#include "reference/norm_kernels.hpp"
#include "reference/softmax_row.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {

/// How many rows softmax_rows takes at a time.
[[nodiscard]] std::size_t softmax_lanes();

/// Sets y of up to softmax_lanes() neighbouring rows, `first` being the index of the first one's first element, as softmax_row does,
/// and says which are set: those that have all `columns` and no mask, and whose scores are finite and not so large that their
/// errors change exponentials by factors. All have the same scale.
[[nodiscard]] std::bitset<TrackedLanes::kMost> softmax_rows(std::span<const SoftmaxRow> rows, std::size_t columns,
                                                            std::size_t first, TrackedOutput& y);

}  // namespace numcheck::reference
