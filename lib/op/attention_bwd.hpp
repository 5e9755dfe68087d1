// Scaled dot-product attention, backward.
#pragma once

#include "op/attention_params.hpp"

namespace numcheck::op {

/// With the scores s of attention_fwd and its inputs, o and lse as the forward pass left them (rounded to the tensors'
/// format, and to FP32), and the gradient do of the output:
///
///   p_ij = exp(s_ij - lse_i)          D_i = sum_c do_ic o_ic          dp_ij = sum_c do_ic v_jc
///   ds_ij = p_ij (dp_ij - D_i)        dv_j = sum_i p_ij do_i          (over the heads that share v)
///   dt_ij = ds_ij (1 - (s_ij / softcap)^2) of scores before a bias that comes after the cap; ds_ij without a cap
///   dq_i = scale sum_j dt_ij k_j      dk_j = scale sum_i dt_ij q_i    (over the heads that share k)
///   dbias_ij = sum over sequences of ds_ij (post_scale), scale dt_ij (pre_scale)
///   dsoftmax_offset_h = -sum over sequences and queries of exp(softmax_offset_h - lse_i) D_i
///
/// With dropout, kept_ij = mask_ij / (1 - dropout): dv_j = sum_i p_ij kept_ij do_i, and dp_ij = kept_ij sum_c do_ic v_jc.
///
/// Ports: q, k, v, bias, softmax_offset, q_lengths, kv_lengths and dropout_mask as in attention_fwd; do, o; lse;
/// dq, dk, dv; dbias [heads, sq, sk]; dsoftmax_offset [heads] (FP32). In FP8 (attention_fp8.hpp) also s_scale, dp_scale and
/// their inverses; the inverse scales of q, k, v, do and o; dq_scale, dk_scale, dv_scale; dp_amax, dq_amax, dk_amax, dv_amax
/// [1] (FP32).
using AttentionBwdParams = AttentionParams;

/// The descriptor of `attention_bwd`.
[[nodiscard]] const Op& attention_bwd();

}  // namespace numcheck::op
