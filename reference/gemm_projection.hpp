// A check of all elements of a product of which only a sample is computed.
#pragma once

#include <optional>

#include "op/reference.hpp"

namespace numcheck::reference {

/// Freivalds' check in floating point: with random signs r_j for the columns of one block,
///
///   sum_j r_j y_ij = alpha sA sB sum_t a_it (sum_j r_j b_tj) + sum_j r_j (beta C_ij + bias_j)
///   sum_j S2_ij    = (alpha sA sB)^2 sum_t a_it^2 sum_j b_tj^2
///
/// in double, whose own errors are far below those of any device. Nothing for other epilogues than `none`, and for operands
/// that are not finite. Source: R. Freivalds, "Probabilistic machines can use less running time", IFIP Congress 1977; the
/// predicted size of what a correct product leaves is derived here.
[[nodiscard]] std::optional<op::Projection> gemm_projection(const op::ReferenceRequest& request,
                                                            const op::WholeOutput& output);

}  // namespace numcheck::reference
