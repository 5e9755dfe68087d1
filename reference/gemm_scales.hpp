// Scales of rows and blocks of the operands of a product (op/gemm_scaling.hpp).
#pragma once

#include <span>

#include "core/buffer.hpp"
#include "op/block_scaling.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// code * scale_inv of every element, exact unless a double cannot hold it. NaN and infinities propagate.
[[nodiscard]] core::Buffer<double> dequantised(const op::Operand& codes, const op::Operand& scales,
                                               const op::BlockLayout& layout);

/// The same of magnitudes, but for 0 none below the smallest normal code, and none of an E4M3 scale below 2^-6: at that exponent
/// tensor cores align the products of smaller ones, whose errors are as large.
[[nodiscard]] core::Buffer<double> aligned_magnitudes(const op::Operand& codes, const op::Operand& scales,
                                                      const op::BlockLayout& layout);

/// Reference::derive of `gemm`: scales from draws x, RN32(|x|), or the largest power of two that is not above
/// it, for mxfp8 not below 2^-127, or for nvfp4 the E4M3 number next to |x|, from 2^-9 to 448; 1 for 0, infinities and NaN, as
/// TransformerEngine's recipes have it.
void derive_gemm_scales(const op::DeriveRequest& request, std::span<double> values);

}  // namespace numcheck::reference
