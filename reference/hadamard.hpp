// The random Hadamard transform that TransformerEngine applies before it quantises the operands of weight gradients.
//
//   y_k = RN_bf16(1/4 sum_j s_j x_j (-1)^popcount(j & k))        j, k: 0 to 15
//   s   = + + + -  + - - -  - - - +  - + - -
//
// of 16 elements of a line at a time. It is orthogonal, so that a product of two operands that have both been transformed is as if
// neither had.
// Source: TransformerEngine pytorch/tensor/nvfp4_tensor.py, get_rht_matrix; common/hadamard_transform/hadamard_transform_cast_fusion.cu
// for the rounding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/buffer.hpp"

namespace numcheck::reference {

struct Transformed {
  core::Buffer<double> values;
  /// For every 16 elements: 1 if the order in which FP32 sums are formed may decide how one of them is rounded.
  std::vector<std::uint8_t> uncertain;
};

/// Of BF16 numbers, the lines of a matrix one after another. A sum of zeros is +0, as one that begins with +0 is. Precondition: the
/// length of lines is a multiple of 16. `has_signs`: false as
/// kernels leave them out.
[[nodiscard]] Transformed hadamard_transformed(std::span<const double> x, bool has_signs = true);

}  // namespace numcheck::reference
