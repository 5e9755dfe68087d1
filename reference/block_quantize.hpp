// Casts to FP8 with a scale per block: codes and scales of whole tensors, on all threads.
#pragma once

#include <span>

#include "core/buffer.hpp"
#include "op/block_scaling.hpp"
#include "op/quantize.hpp"
#include "op/reference.hpp"
#include "reference/scale_rule.hpp"

namespace numcheck::reference {

/// What a block's elements are multiplied by, and the number that is stored for it.
struct BlockScale {
  float factor = 1;
  float stored = 1;
};

/// The scale of a block by its amax.
class BlockRule {
 public:
  /// `input`: the format of x, which limits FP32 scales.
  BlockRule(const op::QuantizeParams& p, core::Dtype input);

  [[nodiscard]] BlockScale operator()(double amax) const;
  [[nodiscard]] core::Dtype codes() const { return rule_.codes; }

 private:
  ScaleRule rule_;
  bool has_exponents_;
  bool up_;
};

/// x of one layout. Codes are as x lies, within the largest number and not yet rounded to their format; scales are row by
/// row of blocks.
struct BlockCodes {
  core::Buffer<double> codes;
  core::Buffer<double> scales;
};
[[nodiscard]] BlockCodes block_codes(std::span<const double> x, const op::BlockLayout& layout, const BlockRule& rule);

/// The outputs of `quantize` for a block recipe, of both layouts.
[[nodiscard]] op::Values block_quantized(const op::ReferenceRequest& request);

/// The codes of kernels that forget the scales, and the column-wise ones that are made with the row-wise scales.
[[nodiscard]] op::Values unscaled_block_codes(const op::ReferenceRequest& request);
[[nodiscard]] op::Values columnwise_of_rowwise_scales(const op::ReferenceRequest& request);

/// y of `dequantize` for a block recipe.
[[nodiscard]] op::Values block_dequantized(const op::ReferenceRequest& request);

/// Its inputs q and q_scale_inv, from draws.
void derive_blocks(const op::DeriveRequest& request, std::span<double> values);

}  // namespace numcheck::reference
