// Bindings of the row normalisations and of attention to cuDNN's graph interface, and of the softmax to its legacy
// functions.
#pragma once

#include "kernels/contract/binding.hpp"

namespace numcheck::kernels::cudnn {

/// How it would multiply matrices.
inline constexpr auto kArithmetic = model::MatrixArithmetic::by_mode;

/// Normalisation operations of cuDNN, run by the engines that its heuristics propose; one algorithm per execution plan.
/// See norm_graph.hpp for the graphs.
[[nodiscard]] const Binding& layernorm_fwd();
[[nodiscard]] const Binding& layernorm_bwd();
[[nodiscard]] const Binding& rmsnorm_fwd();
[[nodiscard]] const Binding& rmsnorm_bwd();

/// cudnnSoftmaxForward and cudnnSoftmaxBackward, algorithm `accurate` (the maximum is subtracted), over the rows of
/// [batches * heads * sq, sk]. The graph interface has no engine for a softmax on its own.
///
/// Both functions compute alpha Op(inputs). Forward, alpha scales the result and not the scores, so only a scale of 1
/// (after the op's rounding) and no mask are supported. Backward, alpha is the op's scale; y is zero where an arbitrary
/// mask was, so that mask needs no handling; a causal one does, because the op ignores dy beyond it.
[[nodiscard]] const Binding& softmax_fwd();
[[nodiscard]] const Binding& softmax_bwd();

/// Fused attention with statistics, and its gradients, by every engine that the heuristics propose for each form of the
/// graph (attention_graph.hpp). Only BF16 and FP16. Offered are graphs whose results are the same in every run:
/// backward, NVIDIA's default sums dq by atomic additions, and so is the gradient of a learnable offset; neither is
/// run.
///
/// The library is asked about every case. Where it accepts what NVIDIA's documents exclude, the detail `documents` of
/// the algorithm says so; where it refuses, the message has the rule and the library's own words.
[[nodiscard]] const Binding& attention_fwd();
[[nodiscard]] const Binding& attention_bwd();

/// What the first engine of attention_fwd draws, read back by kernels::harness::probed_mask.
[[nodiscard]] const Binding& attention_dropout();

}  // namespace numcheck::kernels::cudnn
