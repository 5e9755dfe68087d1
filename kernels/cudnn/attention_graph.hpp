// Attention as operation graphs.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/cudnn/graph.hpp"

namespace numcheck::kernels::cudnn {

/// The ways in which cuDNN takes attention.
enum class AttentionForm {
  composite,    ///< products, element-wise operations and reductions, which its engines recognise as a pattern
  accumulated,  ///< backward: the same, but dq is summed up in an FP32 buffer; NVIDIA's default
  unified,      ///< forward: one operation
};

[[nodiscard]] std::string_view form_name(AttentionForm form) noexcept;

/// The forms that can say what a case of attention_fwd or attention_bwd asks for, in the order of preference. `version`
/// is the library's, as cudnnGetVersion gives it. One operation, before 9.21, has neither masks except lengths nor
/// biases nor sinks nor dropout nor the largest score; since 9.21 it takes the statistics through another descriptor, and is not offered.
[[nodiscard]] std::vector<AttentionForm> attention_forms(const Call& call, std::size_t version);

/// The output that is summed up by atomic additions, so that repeated runs may differ: dq in the accumulated form, and
/// the gradient of a learnable offset in any (NVIDIA's own tests leave it out when they compare runs). Empty: none.
[[nodiscard]] std::string_view unordered_sum(const Call& call, AttentionForm form);

/// True if a case without lengths gets those of whole sequences: up to 9.15.0, backward engines are wrong without
/// lengths if sk is not a multiple of 128, and NVIDIA's frontend does the same.
[[nodiscard]] bool gets_full_lengths(const Call& call, std::size_t version);

/// The graph of such a case, before Graph::finalize: q, k^T, v, o and their gradients as [batches, heads, rows,
/// columns] with the strides of the case's layout, lse as [batches, heads, sq, 1], the bias as [1, heads, sq, sk],
/// lengths as [batches, 1, 1, 1]. The order of the operations is the one of op::AttentionParams, forward:
///
///   s = q k^T; mul scale; [div cap, tanh, mul cap]; [add bias]; [add alibi]; [select padding]; [select right bound];
///   [select left bound]; m = max s (max_logit); e = exp(s - m); l = sum e; lse = m + log l; p = e / l;
///   [mul 1 / (1 - dropout), mul mask; a mask that is drawn first]; o = p v
///
/// with a sink: m = max(max s, sink), l = sum e + exp(sink - m). Backward: p = exp(s - lse) from the same s, and
///
///   D = sum do o; dv = p^T do, [p times mask, times 1 / (1 - dropout)];
///   ds = p (do v^T - D), with dropout p (mask do v^T - (1 - dropout) D) / (1 - dropout); dbias = sum ds; [derivative of the cap]; mul scale;
///   dk = ds^T q; dq = ds k; dsink = sum exp(sink - lse) D
///
/// (the pattern has no minus sign, unlike the derivative). Masked scores are -infinity. What engines round: p and ds to
/// the format of q, since they are operands of products. ALiBi's slopes, a sink of zero (off_by_one), D and the sums of
/// dq are auxiliary tensors. Scale, cap and bounds are passed by value.
///
/// FP8: attention_fp8_graph.hpp.
///
/// Precondition: the form is one of attention_forms. Throws CudnnError.
/// Source: NVIDIA's cudnn-frontend 1.23, scaled_dot_product_flash_attention.h, for what the patterns consist of.
[[nodiscard]] std::shared_ptr<Graph> attention_graph(const Library& library, const Call& call, AttentionForm form);

}  // namespace numcheck::kernels::cudnn
