// What the backend `unfused` computes.
#pragma once

#include "kernels/contract/binding.hpp"

namespace numcheck::kernels::unfused {

/// How it multiplies matrices: by cuBLASLt.
inline constexpr auto kArithmetic = model::MatrixArithmetic::by_mode_alpha_first;

/// Attention as TransformerEngine's UnfusedDotProductAttention computes it, which is where FP32 inputs end up: products
/// of cuBLASLt around element-by-element kernels. Every intermediate tensor is stored in the format of the inputs. With
/// RN(x) for x rounded to that format, and from left to right:
///
///   scores   t = RN(scale q k^T); with a pre_scale bias t = RN(RN(RN(q k^T) + bias) scale)
///            softcap: t = RN(softcap RN(tanh(RN(t / softcap))))
///            post_scale or alibi: t = RN(t + bias)
///   weights  p = RN(exp(t - max) / sum), in FP32 in between; 0 for keys that are not seen
///   sink     RN(softmax_offset) joins max and sum
///   dropout  p = RN(p mask / (1 - dropout)) of the weights that are multiplied
///   output   o = RN(p v); lse = max + log(sum) and max_logit, without the sink, in FP32
///
/// In 16-bit modes every RN but that of o is declared (model::AttentionRounding), so that such results are warned about.
/// In FP32 modes RN is FP32's own rounding. Products run in the compute type of the mode, so NVIDIA_TF32_OVERRIDE
/// applies to them.
///
/// Unlike fused kernels, products take all keys: a NaN or an infinity in a value or key that nobody sees still meets
/// the weight 0, and 0 NaN = NaN reaches every query of the head (o from v, dq from k; dk and dv from padded rows of q
/// and do). That is a property of this path, not of this implementation of it. So is the overflow of scores beyond the
/// range of FP16. Where TransformerEngine replaces masked scores by -10000, here they do not take part, so that a query
/// that sees nothing has o = 0; the two differ from scores near -9900 downwards, and in such queries.
///
/// Refused: formats other than FP32, BF16 and FP16; scores of all heads that do not fit the device's memory.
/// Source: TransformerEngine pytorch/attention/dot_product_attention, backends.py (UnfusedDotProductAttention),
/// softmax.py.
[[nodiscard]] const Binding& attention_fwd();

/// Gradients as automatic differentiation takes them, with t and p as in attention_fwd and D_i = sum_c do_ic o_ic in
/// FP32 from the given o:
///
///   p recomputed (with its own sums; the given lse is not used)     dv = RN(p^T do)      dp = RN(do v^T)
///   with dropout p = RN(p mask / (1 - dropout)) in dv, and dp = RN(dp mask / (1 - dropout))
///   ds = RN(p (dp - D))                                             dbias = RN(sum over sequences of ds), post_scale
///   dt = ds; softcap: dt = RN(RN(RN(ds softcap) (1 - y^2)) / softcap) with y = RN(tanh(RN(t / softcap)))
///     of the score before the cap
///   dq = RN(scale dt k)      dk = RN(scale dt^T q)
///   pre_scale: dt = RN(dt scale) first; dbias is its sum, and dq, dk have no other scale
///   dsoftmax_offset = -sum of exp(RN(softmax_offset) - lse) D in FP32, with the recomputed lse
///
/// Heads that share keys: dk and dv of each are stored, then added in FP32 and rounded once more. Sums over sequences
/// and heads have a fixed order, so results repeat bit for bit as far as cuBLASLt's do.
///
/// Refused besides: cases with `statistics: device` (Call::chained), because no lse is read.
///
/// Frameworks differ in two details: they take D as sum_j p_ij dp_ij, and round dt k to the format before they multiply
/// by scale.
[[nodiscard]] const Binding& attention_bwd();

}  // namespace numcheck::kernels::unfused
