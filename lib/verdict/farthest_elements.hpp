// Which elements of an output are farthest off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "op/op.hpp"

namespace numcheck::verdict {

/// The 64 elements whose errors are largest, and the 64 whose errors are largest beside the root mean square of their rows, in
/// ascending order; none where only a sample is expected. `stored` gives what the device stored as an element.
[[nodiscard]] std::vector<std::int64_t> farthest_elements(std::span<const double> expected, const op::Port& port,
                                                          const std::function<double(std::size_t)>& stored);

}  // namespace numcheck::verdict
