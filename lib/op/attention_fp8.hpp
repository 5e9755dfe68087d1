// Attention in FP8: scales, and what they are called.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "op/attention_params.hpp"

namespace numcheck::op {

/// In the scaled modes q, k, v and o are E4M3; do, dq, dk and dv are E5M2 in fp8_hybrid and E4M3 in fp8_e4m3. The value of
/// an input is code * scale_inv; an output stores sat(RN(value * scale)), and its amax is max |value|. Two tensors exist
/// only inside the kernels, where they are operands of products:
///
///   s   the weights p = exp(s - lse): E4M3 numbers sat(RN(p * s_scale)), multiplied by s_scale_inv afterwards. An
///       unnormalised numerator exp(s - m), m the largest score so far, may take the place of p, with the same scale.
///   dp  the gradients scale ds of the scaled products: sat(RN(scale ds * dp_scale)) in the gradients' format, multiplied
///       by dp_scale_inv afterwards
///
/// s_scale is what the recipe makes of the largest weight that a softmax can have, 1; dp_scale of the largest |scale ds| of
/// the case. s_amax is max p, dp_amax is max |scale ds|, both over the queries and keys that see each other. Bias tensors
/// have no scaled form; dropout and the largest score are left out, as in the sources.
/// Source: NVIDIA's cudnn-frontend 1.23, sdpa_fp8_bwd.h, scaled_dot_product_flash_attention.h, matmul_fp8.h;
/// TransformerEngine 2.20, common/fused_attn/fused_attn_fp8.cu.
[[nodiscard]] bool has_scales(const Mode& mode) noexcept;

/// Format of o.
[[nodiscard]] core::Dtype attention_output(const Mode& mode) noexcept;
/// Format of do, dq, dk and dv.
[[nodiscard]] core::Dtype attention_gradient(const Mode& mode) noexcept;

/// The scale of the weights, and its inverse: s_scale, s_scale_inv. Inputs that the reference derives.
[[nodiscard]] std::vector<Port> weight_scales();
/// The same of the gradients of scaled products: dp_scale, dp_scale_inv.
[[nodiscard]] std::vector<Port> score_gradient_scales();
/// "q_scale_inv" of "q" and so on.
[[nodiscard]] std::vector<Port> operand_scales(const std::vector<std::string_view>& tensors);
/// "dq_scale" of "dq" and so on.
[[nodiscard]] std::vector<Port> result_scales(const std::vector<std::string_view>& tensors);
/// "s_amax" of "s" and so on.
[[nodiscard]] std::vector<Port> amaxes(const std::vector<std::string_view>& tensors);

/// What is wrong with the parameters in that mode.
[[nodiscard]] std::vector<std::string> check_attention_mode(std::string_view op, const AttentionParams& p,
                                                            const Mode& mode);

}  // namespace numcheck::op
