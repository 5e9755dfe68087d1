// NaN that can be told apart, for ops that move bits.
#pragma once

#include <cstddef>
#include <span>

#include "op/op.hpp"

namespace numcheck::data {

/// Gives every NaN of a 16- or 32-bit port its own sign and payload; it stays quiet, and never has all bits set, as elements
/// that were not written have.
void vary_nans(const op::Port& port, std::span<std::byte> bytes);

}  // namespace numcheck::data
