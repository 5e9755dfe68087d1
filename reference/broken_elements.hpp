// Elements of an output that are NaN or infinite and should not be.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/dtype.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// Flat indices of up to `most` such elements of the first output. Infinities of numbers that its format does not hold are right.
[[nodiscard]] inline std::vector<std::int64_t> broken_elements(const op::FindingRequest& request, std::size_t most) {
  const op::Delivered& output = request.outputs[0];
  const op::OutputValues& expected = request.expected->outputs.at(0);
  const double largest = core::dtype_info(output.dtype).max_finite / output.scale;
  std::vector<std::int64_t> found;
  for (std::size_t n = 0; n < expected.value.size() && found.size() < most; ++n) {
    const std::int64_t at = request.sample->all() ? static_cast<std::int64_t>(n) : request.sample->indices[n];
    const double got = output.value[static_cast<std::size_t>(at)], y = expected.value[n];
    const bool overflowed = std::isinf(got) && std::fabs(y) > largest && std::signbit(got) == std::signbit(y);
    if (!std::isfinite(got) && std::isfinite(y) && !overflowed) {
      found.push_back(at);
    }
  }
  return found;
}

}  // namespace numcheck::reference
