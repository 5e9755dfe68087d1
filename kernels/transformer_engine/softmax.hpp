// Bindings of softmax_fwd and softmax_bwd to TransformerEngine's four pairs of softmax functions.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::te {

/// Masks none, arbitrary, causal and causal_bottom_right are nvte_scaled_softmax, _scaled_masked_softmax,
/// _scaled_upper_triang_masked_softmax and _scaled_aligned_causal_masked_softmax. They take BF16 and FP16, replace
/// masked scores by -10000, and round the forward scale to the tensor's format. Their kernels take rows of up to 16384
/// columns that are read four at a time from 65 columns on, and a fixed number of rows per block.
/// Source: TransformerEngine common/fused_softmax.
[[nodiscard]] const Binding& softmax_fwd();
[[nodiscard]] const Binding& softmax_bwd();

}  // namespace numcheck::kernels::te
