// Reads back the dropout mask of a library that draws it inside its attention.
#pragma once

#include <functional>

#include "kernels/contract/backend.hpp"

namespace numcheck::kernels::harness {

/// attention_dropout by forward attention of the same case, over zeros for q, k, bias and offset: all weights of a query are
/// then equal. The values are unit vectors, value_channels() keys at a time, so that o_ic is not 0 where the weight of key c
/// is kept. A launch runs the forward pass for each of these blocks of keys, and copies o in between.
///
/// `forward` makes the algorithm of a call of attention_fwd. Throws NotSupported if it does, and for ALiBi, whose slopes
/// leave distant keys no weight.
[[nodiscard]] Algorithm probed_mask(DeviceMemory& memory, const Call& call,
                                    const std::function<Algorithm(const Call&)>& forward);

}  // namespace numcheck::kernels::harness
