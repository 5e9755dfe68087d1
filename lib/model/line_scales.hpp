// Scales of the rows of A and the columns of B, part of k by part of k.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "op/gemm_scaling.hpp"

namespace numcheck::model {

/// Row i of A and column j of B contribute sum (a[i] b[j]) of every part of k, in FP32: the product of the scales is rounded, and
/// the sum times it is added to what is there in a fused multiply-add. So cuBLASLt 13.1 computes on an H200.
/// `in_groups`: they are E4M3 numbers, of which fused steps take the product with sums of groups (group_product.hpp).
/// With `in_products` they are powers of two, and fused steps take the products with them, at their exponents; in chains of
/// multiply-adds the sum of a part is multiplied by both, rounded once, and added.
struct LineScales {
  std::vector<float> a;       ///< m x parts, row-major
  std::vector<float> b;       ///< n x parts
  std::int64_t parts = 0;     ///< of k
  std::int64_t products = 0;  ///< per part, fewer in the last; 0: there are no scales
  bool in_products = false;
  bool in_groups = false;
};

/// Where the scales of both operands are stored.
struct StoredScales {
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
};

/// Those of some rows of A and some columns of B, in that order. Precondition: op::has_line_scales.
[[nodiscard]] LineScales load_line_scales(const op::GemmParams& params, const StoredScales& stored,
                                          std::span<const std::int64_t> rows, std::span<const std::int64_t> columns);

}  // namespace numcheck::model
