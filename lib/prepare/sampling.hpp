// Which outputs are referenced when all of them would cost too much.
#pragma once

#include <cstddef>
#include <cstdint>

#include "op/op.hpp"
#include "op/reference.hpp"

namespace numcheck::prepare {

/// About `count` elements of an output, sorted and distinct: the corners, both sides of tile borders (multiples of
/// 128), the last rows and columns, and uniformly random ones (seeded by the shape, so every run picks the same).
[[nodiscard]] op::Sample choose_sample(const op::Port& output, std::size_t count);

}  // namespace numcheck::prepare
