// Attention in the terms of TransformerEngine's interface, and what the library says about a case.
#pragma once

#include <cstdint>
#include <string>

#include "eligibility/facts.hpp"
#include "kernels/transformer_engine/binding.hpp"
#include "kernels/transformer_engine/tensor.hpp"
#include "op/attention_params.hpp"

namespace numcheck::kernels::transformer_engine {

/// Numbers of the attributes that configurations, forward and backward parameters share.
struct SharedAttributes {
  int mask;
  int bias;
  int window_left;
  int window_right;
  int bottom_right;
  int softmax;
  int dropout;
  int scale;
  int qkv_layout;
  int o_format;
  int longest_q;
  int longest_kv;
};

/// The attributes' values for a case. Under a causal mask the window ends at the diagonal, as TransformerEngine's own
/// callers have it; the diagonal ends at the bottom right for the masks of that name and, as AttentionParams defines it,
/// for windows without a causal mask.
struct AttentionTerms {
  explicit AttentionTerms(const op::AttentionParams& p);

  /// Sets them, and no dropout.
  void apply(AttributeObject& object, const SharedAttributes& attributes) const;

  int mask;
  int bias;
  int softmax;
  int layout;
  int format;
  std::int64_t window_left;
  std::int64_t window_right;
  bool bottom_right;
  float dropout;
  float scale;
  std::size_t longest_q;
  std::size_t longest_kv;
};

/// What runs a case.
enum class AttentionPass {
  training_forward,
  inference_forward,
  backward,  ///< with the deterministic algorithm
};

/// The pass in the terms of configs/attention_gates.json; the version of the library's cuDNN is unknown.
[[nodiscard]] eligibility::Circumstances circumstances_of(const op::Mode& mode, int sm, AttentionPass pass);

/// Why nvte_get_fused_attn_backend_v2 has no kernel for the case, in its own words, and after them the gate
/// (`fused_kernels` of configs/attention_gates.json) that fails, if one does; empty if it has one. Asks cuDNN, on the current device.
[[nodiscard]] std::string fused_attention_refusal(const Context& context, const op::AttentionParams& p,
                                                  const op::Mode& mode, AttentionPass pass);

}  // namespace numcheck::kernels::transformer_engine
