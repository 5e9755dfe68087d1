// The names of all ops, once. The backends that have every op declare their bindings from it, and reference/ its entry
// points; app/catalog.cpp says which backends an op has.
#pragma once

// clang-format off: one op a line
#define NUMCHECK_OPS(X) \
  X(gemm) \
  X(grouped_gemm) \
  X(layernorm_fwd) \
  X(layernorm_bwd) \
  X(rmsnorm_fwd) \
  X(rmsnorm_bwd) \
  X(activation_fwd) \
  X(activation_bwd) \
  X(bias_grad) \
  X(softmax_fwd) \
  X(softmax_bwd) \
  X(attention_fwd) \
  X(attention_bwd) \
  X(attention_dropout) \
  X(quantize) \
  X(dequantize) \
  X(transpose) \
  X(swizzle_scales) \
  X(amax) \
  X(multi_tensor_scale) \
  X(fp8_recipe) \
  X(rope_fwd) \
  X(rope_bwd) \
  X(moe_permute) \
  X(moe_unpermute) \
  X(router_topk) \
  X(dropout_fwd) \
  X(dropout_bwd)
// clang-format on
