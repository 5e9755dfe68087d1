// Does a computed GEMM result agree with twofold arithmetic?
#pragma once

#include <cstdint>
#include <span>

#include "reference/gemm_operands.hpp"

namespace numcheck::reference {

/// Recomputes 64 elements of `d` (or all, if there are fewer), chosen by a fixed generator, in twofold arithmetic and
/// throws core::InternalError if one differs by more than (k + 16) 2^-53 A, times 1.13 for the steepest epilogue.
/// Element i is output indices[i], or output i if `indices` is empty. NaN must match NaN.
void check_against_twofold(const GemmOperands& g, std::span<const double> d, std::span<const std::int64_t> indices);

}  // namespace numcheck::reference
