#include "op/mode.hpp"

#include <algorithm>
#include <array>

namespace numcheck::op {
namespace {

using core::Dtype;

constexpr std::array kModes = {
    Mode{"fp32", Dtype::fp32, Dtype::fp32, Dtype::fp32, Compute::fp32, false,
         "FP32 storage and FP32 products (CUBLAS_COMPUTE_32F)"},
    Mode{"fp32_pedantic", Dtype::fp32, Dtype::fp32, Dtype::fp32, Compute::fp32_pedantic, false,
         "FP32 in every phase, no tensor cores (CUBLAS_COMPUTE_32F_PEDANTIC)"},
    Mode{"tf32", Dtype::fp32, Dtype::fp32, Dtype::fp32, Compute::fast_tf32, false,
         "FP32 storage, operands may be rounded to TF32 (CUBLAS_COMPUTE_32F_FAST_TF32)"},
    Mode{"fp32_fast16f", Dtype::fp32, Dtype::fp32, Dtype::fp32, Compute::fast_16f, false,
         "FP32 storage, operands may be rounded to FP16 (CUBLAS_COMPUTE_32F_FAST_16F)"},
    Mode{"fp32_fast16bf", Dtype::fp32, Dtype::fp32, Dtype::fp32, Compute::fast_16bf, false,
         "FP32 storage, operands may be rounded to BF16 (CUBLAS_COMPUTE_32F_FAST_16BF)"},
    Mode{"bf16x9", Dtype::fp32, Dtype::fp32, Dtype::fp32, Compute::emulated_bf16x9, false,
         "FP32 emulated by nine BF16 products where the device supports it (CUBLAS_COMPUTE_32F_EMULATED_16BFX9)"},
    Mode{"bf16", Dtype::bf16, Dtype::bf16, Dtype::bf16, Compute::fp32, false, "BF16 storage, FP32 accumulation"},
    Mode{"fp16", Dtype::fp16, Dtype::fp16, Dtype::fp16, Compute::fp32, false, "FP16 storage, FP32 accumulation"},
    Mode{"fp16_acc16", Dtype::fp16, Dtype::fp16, Dtype::fp16, Compute::fp16, false,
         "FP16 storage, FP16 accumulation (CUBLAS_COMPUTE_16F)"},
    Mode{"fp8_e4m3", Dtype::fp8_e4m3, Dtype::fp8_e4m3, Dtype::bf16, Compute::fp32, true,
         "E4M3 operands with per-tensor scales, FP32 accumulation; attention: all tensors are E4M3"},
    Mode{"fp8_hybrid", Dtype::fp8_e4m3, Dtype::fp8_e5m2, Dtype::bf16, Compute::fp32, true,
         "E4M3 times E5M2 with per-tensor scales, FP32 accumulation; attention: o is E4M3, gradients are E5M2"},
    Mode{"fp4_e2m1", Dtype::fp4_e2m1, Dtype::fp4_e2m1, Dtype::bf16, Compute::fp32, true,
         "E2M1 operands with a scale per 16 elements and one per tensor (NVFP4), FP32 accumulation"},
};

}  // namespace

std::span<const Mode> all_modes() noexcept {
  return kModes;
}

const Mode* find_mode(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kModes, name, &Mode::name);
  return found == kModes.end() ? nullptr : found;
}

}  // namespace numcheck::op
