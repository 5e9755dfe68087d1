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
/// With `statistics: device`, o and lse are instead what the backend's own forward pass leaves on the device in the same
/// case. They are then outputs, judged as those of attention_fwd are, and the gradients are judged against a reference that
/// reads the same o and lse: each pass answers for its own errors, with bounds as tight as if it ran alone, so that a
/// stale or wrong lse fails as `lse` and not as a gradient. The gates of both together bound the total error, that against
/// gradients from the reference's own o and lse, which is reported beside it and not judged, since its bound would have to
/// be as wide as both. Not in FP8.
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
