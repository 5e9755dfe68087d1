// Operands whose rounding changes how large they are.
#pragma once

#include <span>

#include "op/reference.hpp"

namespace numcheck::prepare {

/// Whether some row or column of an FP8 operand has less than 0.8 times the energy that it had before it was rounded, because codes
/// saturate or are zeros, or infinities have become numbers: then magnitudes of the unrounded operands say little of its products.
/// `rounded` and `unrounded` are the same ports.
[[nodiscard]] bool loses_size(std::span<const op::Operand> unrounded, std::span<const op::Operand> rounded);

}  // namespace numcheck::prepare
