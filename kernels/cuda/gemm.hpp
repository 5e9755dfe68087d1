// Binding of the op `gemm` to the own FP32 FMA kernel.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels::cuda {

/// It has the modes fp32, fp32_pedantic, bf16 and fp16 and no other, because in FP32 arithmetic the others would not be
/// what they ask for.
[[nodiscard]] const Binding& gemm();

}  // namespace numcheck::kernels::cuda
