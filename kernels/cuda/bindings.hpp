// What our own kernels compute: one binding per op.
#pragma once

#include "kernels/contract/binding.hpp"

namespace numcheck::kernels::cuda {

/// Only the modes fp32, fp32_pedantic, bf16 and fp16: computed in FP32, the others would not be what their names say.
[[nodiscard]] const Binding& gemm();

/// All modes and shapes of the op.
[[nodiscard]] const Binding& layernorm_fwd();

/// All modes and shapes of the op.
[[nodiscard]] const Binding& layernorm_bwd();

/// All modes and shapes of the op.
[[nodiscard]] const Binding& rmsnorm_fwd();

/// All modes and shapes of the op.
[[nodiscard]] const Binding& rmsnorm_bwd();

/// All kinds, modes and outputs.
[[nodiscard]] const Binding& activation_fwd();

/// All kinds, modes and outputs.
[[nodiscard]] const Binding& activation_bwd();

/// All kinds, modes and outputs.
[[nodiscard]] const Binding& bias_grad();

[[nodiscard]] const Binding& softmax_fwd();
[[nodiscard]] const Binding& softmax_bwd();
[[nodiscard]] const Binding& quantize();
[[nodiscard]] const Binding& dequantize();
[[nodiscard]] const Binding& transpose();
[[nodiscard]] const Binding& rope_fwd();
[[nodiscard]] const Binding& rope_bwd();
[[nodiscard]] const Binding& moe_permute();
[[nodiscard]] const Binding& moe_unpermute();
[[nodiscard]] const Binding& router_topk();
[[nodiscard]] const Binding& dropout_fwd();
[[nodiscard]] const Binding& dropout_bwd();

}  // namespace numcheck::kernels::cuda
