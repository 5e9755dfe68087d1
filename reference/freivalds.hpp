// Freivalds' check of a whole GEMM result in quadratic time: for exact cases that are so large that the reference is
// only sampled.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "op/reference.hpp"

namespace numcheck::reference {

/// Checks D = alpha sA sB op(A) op(B) + beta C + bias, all `batch * m * n` elements of `d` (dense, row-major), by
/// multiplying both sides with a random vector modulo the prime p = 2^61 - 1:
///
///   D r = alpha sA sB op(A) (op(B) r) + beta C r + bias r
///
/// Every finite double is a dyadic rational and so has an exact residue (2 is invertible), hence the check is exact
/// arithmetic: a correct D always passes, a wrong row is missed with probability 1/p (4.3e-19), unless the error itself
/// is a multiple of p, which integers below 2^61 are not. It is valid where D is exact, and for epilogue `none`, since
/// the check is linear. A NaN or infinity in D is wrong. The operands are those of the reference (gemm.hpp); they must
/// be finite. Throws core::InternalError for another epilogue, non-finite operands, or a `d` of the wrong size.
/// Source: R. Freivalds, "Probabilistic machines can use less running time", IFIP Congress 1977.
[[nodiscard]] bool freivalds_holds(const op::ReferenceRequest& request, std::span<const double> d,
                                   std::uint64_t seed = 1);

/// The same, naming the first wrong row (batch * m + i), or nothing if the check holds.
[[nodiscard]] std::optional<std::int64_t> freivalds_wrong_row(const op::ReferenceRequest& request,
                                                              std::span<const double> d, std::uint64_t seed = 1);

}  // namespace numcheck::reference
