#include "plan/plan.hpp"

namespace numcheck::plan {

// Listed one by one, never by pattern: CUBLASLT_LOG_FILE writes files, CUBLASLT_LOG_LEVEL prints to stdout,
// CUDA_INJECTION64_PATH loads code. Sources: cuBLAS manual (environment variables, reproducibility, floating-point
// emulation), cuDNN headers, TransformerEngine's environment variables.
std::vector<EnvironmentVariable> settable_variables() {
  return {
      {"NVIDIA_TF32_OVERRIDE", "0: no TF32 in any NVIDIA library; 1: TF32 even where FP32 is requested"},
      {"CUBLAS_WORKSPACE_CONFIG", "workspace of cuBLAS handles, such as :4096:8; changes the algorithm, hence bits"},
      {"CUBLAS_EMULATE_SINGLE_PRECISION", "1: FP32 products by BF16x9 emulation (CC 10.0, 10.3)"},
      {"CUBLAS_EMULATE_DOUBLE_PRECISION", "1: FP64 products by fixed-point emulation"},
      {"CUBLAS_EMULATION_STRATEGY", "performant or eager: when products are emulated"},
      {"CUBLAS_EMULATION_SPECIAL_VALUES_SUPPORT_MASK", "which of NaN and infinity an emulated product honours"},
      {"CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT", "mantissa bits of the fixed-point emulation"},
      {"CUDNN_LIB_CONFIG", "set of sub-libraries, hence of engines, that cuDNN uses"},
      {"CUDNN_FORWARD_COMPAT_DISABLE", "1: no engines that run by forward compatibility"},
      {"NVTE_NORM_FWD_USE_CUDNN", "1: forward normalisation in cuDNN"},
      {"NVTE_NORM_BWD_USE_CUDNN", "1: backward normalisation in cuDNN"},
      {"NVTE_ZERO_CENTERED_GAMMA_IN_WTYPE", "1: gamma + 1 is rounded to the weight's format"},
      {"NVTE_ALLOW_NONDETERMINISTIC_ALGO", "0: only deterministic algorithms for the attention backward pass"},
      {"NVTE_FLASH_ATTN", "0: no FlashAttention"},
      {"NVTE_FUSED_ATTN", "0: no cuDNN attention"},
      {"NVTE_UNFUSED_ATTN", "0: no unfused attention"},
      {"NVTE_FP8_CURRENT_SCALING_POWER_2_SCALES", "1: current scaling with powers of two"},
      {"NVTE_FP8_BLOCK_SCALING_FP32_SCALES", "1: block scaling with FP32 scales"},
      {"NVTE_USE_CUTLASS_GROUPED_GEMM", "1: grouped products in CUTLASS"},
  };
}

}  // namespace numcheck::plan
