// Softmax of several rows at a time.
#pragma once

#include <cstddef>
#include <span>

#include "reference/softmax_row.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {

/// How many rows softmax_rows takes at a time.
[[nodiscard]] std::size_t softmax_lanes();

/// Sets y of neighbouring rows without masks, `first` being the index of the first one's first element, as softmax_row does. False,
/// and nothing is set, if there are not softmax_lanes() of them, or if scores are not finite, or so large that their errors change
/// exponentials by factors.
[[nodiscard]] bool softmax_rows(std::span<const SoftmaxRow> rows, std::size_t first, TrackedOutput& y);

}  // namespace numcheck::reference
