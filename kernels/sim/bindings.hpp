// What the simulated device computes: one binding per op.
#pragma once

#include "kernels/contract/binding.hpp"

namespace numcheck::kernels::sim {

[[nodiscard]] const Binding& gemm();
[[nodiscard]] const Binding& layernorm_fwd();
[[nodiscard]] const Binding& layernorm_bwd();
[[nodiscard]] const Binding& rmsnorm_fwd();
[[nodiscard]] const Binding& rmsnorm_bwd();
[[nodiscard]] const Binding& activation_fwd();
[[nodiscard]] const Binding& activation_bwd();
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

}  // namespace numcheck::kernels::sim
