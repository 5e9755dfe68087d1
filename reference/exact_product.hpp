// Products that FP32 arithmetic computes without any rounding, which takes half the time of double.
#pragma once

#include "reference/matmul.hpp"

namespace numcheck::reference {

/// Whether a product of these factors, of `shape`, is the same in FP32 as in double: both hold multiples of powers of two 2^p and
/// 2^q, and k max |a| max |b| <= 2^24 2^(p + q), so that all sums of products, in any order, are FP32 numbers. Reads little of
/// factors of which that is not true.
[[nodiscard]] bool is_exact_in_fp32(const ProductShape& shape, const double* first, const double* second);

/// multiply() of such factors, in FP32.
void multiply_in_fp32(const ProductShape& shape, Factor<double> first, Factor<double> second, double* out,
                      const TileFunction& finish);

}  // namespace numcheck::reference
