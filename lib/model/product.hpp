// The accumulators of a matrix product under a schedule, bit for bit.
#pragma once

#include <cstdint>
#include <span>

#include "model/line_scales.hpp"
#include "model/schedule.hpp"

namespace numcheck::model {

/// Dense operands, already in the formats in which the instruction multiplies them; every format's values are floats.
struct ProductOperands {
  std::span<const float> a;  ///< m x k, row-major
  std::span<const float> b;  ///< k x n, row-major
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int32_t a_emin = -126;  ///< smallest normal exponent of the operands' own formats: subnormals align there
  std::int32_t b_emin = -126;
  LineScales scales;  ///< if of parts shorter than k, and not in the products, k is cut there, and nowhere else
};

/// acc[i,j] = the sum of the products a[i,t] b[t,j] under `schedule`, as FP32 words (FP16 values under rne_fp16 unless
/// slices were added). Its k_order must be empty: products are taken in their order. Parallel; the bits do not depend
/// on threads or instruction set. Signs and payloads of NaN are arbitrary.
/// Precondition: operands of fused steps have at most 12 significant bits.
void simulate_product(const Schedule& schedule, const ProductOperands& operands, std::span<float> acc);

}  // namespace numcheck::model
