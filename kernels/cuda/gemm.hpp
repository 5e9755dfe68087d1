// Binding of the op `gemm` to the own FP32 FMA kernel.
#pragma once

#include <string>
#include <vector>

#include "kernels/backend.hpp"
#include "kernels/cuda_support/cuda_device.hpp"

namespace numcheck::kernels::cuda {

/// Why the own kernel does not compute the case, as a sentence; empty if it does. It has the modes fp32, fp32_pedantic,
/// bf16 and fp16 and no other, because in FP32 arithmetic the others would not be what they ask for.
[[nodiscard]] std::string gemm_obstacle(const Call& call);

[[nodiscard]] Algorithm gemm_algorithm(CudaDevice& device, const Call& call);

}  // namespace numcheck::kernels::cuda
