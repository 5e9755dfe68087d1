// Of what numbers correct products in FP32 are multiples.
#pragma once

#include "model/arithmetic.hpp"
#include "model/error_model.hpp"
#include "op/gemm.hpp"

namespace numcheck::tolerance {

/// What a sum of products keeps.
struct KeptBits {
  double unit = 0;         ///< of the accumulator, relative to its largest number or product; 0: FP32's
  double chains = 1;       ///< that are added in FP32
  double subnormal = 0;    ///< largest product that is aligned like a larger one
  double scale = 1;        ///< of the products
  double enlargement = 1;  ///< of the products by rounding the operands
};

/// Relative unit of an accumulator that aligns to F bits and stores tau.
[[nodiscard]] double accumulator_unit(const model::Arithmetic& arithmetic);

/// Partial sums of products in random order are at most |y| + 2 sqrt(S2), or else A, and keep as many bits as the
/// accumulator has. A sum of several chains has the spacing of the finest. Where C or bias cancel, or gelu's tail, FP32
/// keeps its bits of A.
[[nodiscard]] model::Spacing product_spacing(const model::ModelRequest& request, const op::GemmParams& p,
                                             const KeptBits& kept);

}  // namespace numcheck::tolerance
