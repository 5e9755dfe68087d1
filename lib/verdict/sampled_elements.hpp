// Some elements of a stored tensor, for what is told by a share of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "op/op.hpp"

namespace numcheck::verdict {

/// Up to 2^16 elements in 16 pieces, the first and the last of which have the tensor's first and last element; all of smaller
/// tensors. Each is decoded, without its scale, and comes with its flat logical index, in ascending order. The same indices for
/// every tensor of that shape.
void for_sampled_elements(const op::Port& port, std::span<const std::byte> bytes,
                          const std::function<void(double value, std::int64_t index)>& use);

}  // namespace numcheck::verdict
