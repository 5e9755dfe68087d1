#include "machine/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace numcheck::machine {
namespace {

constexpr std::array kVariables{
    NumericVariable{"NVIDIA_TF32_OVERRIDE",
                    "0 forbids TF32 in NVIDIA libraries; 1 forces it on FP32 products (measured)"},
    NumericVariable{"CUBLAS_EMULATE_SINGLE_PRECISION", "FP32 products through BF16x9 (sm_100)"},
    NumericVariable{"CUBLAS_EMULATE_DOUBLE_PRECISION", "FP64 products through fixed point"},
    NumericVariable{"CUBLAS_EMULATION_STRATEGY", "when emulation is used: performant or eager"},
    NumericVariable{"CUBLAS_EMULATION_SPECIAL_VALUES_SUPPORT_MASK", "handling of infinities and NaN under emulation"},
    NumericVariable{"CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT", "mantissa bits of emulated FP64"},
    NumericVariable{"CUBLAS_WORKSPACE_CONFIG", "workspace of cuBLAS handles, hence the algorithm"},
    NumericVariable{"CUBLASLT_WORKSPACE_SIZE", "workspace that frameworks give cuBLASLt, hence the algorithm"},
    NumericVariable{"CUBLASLT_HEURISTICS_CACHE_CAPACITY", "selection of algorithms"},
    NumericVariable{"CUBLASLT_HEURISTICS_LUT_FILE", "selection of algorithms from a file"},
    NumericVariable{"CUBLASLT_DISABLE_CPU_INSTRUCTIONS_MASK", "host instruction sets inside cuBLASLt"},
    NumericVariable{"CUBLAS_AUTOTUNING_CACHE_CAPACITY", "selection of algorithms"},
    NumericVariable{"CUDNN_LIB_CONFIG", "which cuDNN libraries are loaded"},
    NumericVariable{"CUDNN_FORWARD_COMPAT_DISABLE", "engines on devices newer than the library"},
    NumericVariable{"CUDA_VISIBLE_DEVICES", "which device is device 0"},
    NumericVariable{"CUDA_DEVICE_ORDER", "which device is device 0"},
    NumericVariable{"CUDA_FORCE_PTX_JIT", "the driver compiles kernels from PTX"},
    NumericVariable{"CUDA_DISABLE_PTX_JIT", "the driver never compiles PTX"},
    NumericVariable{"CUDA_INJECTION64_PATH", "loads code into every CUDA process"},
    NumericVariable{"LD_PRELOAD", "loads code into every process"},
    NumericVariable{"NVTE_NORM_FWD_USE_CUDNN", "TransformerEngine: forward norms in cuDNN"},
    NumericVariable{"NVTE_NORM_BWD_USE_CUDNN", "TransformerEngine: backward norms in cuDNN"},
    NumericVariable{"NVTE_ZERO_CENTERED_GAMMA_IN_WTYPE", "TransformerEngine: 1 + gamma in the format of the weights"},
    NumericVariable{"NVTE_FP8_GEMM_HIGH_PRECISION_ACCUMULATION",
                    "TransformerEngine: split accumulation of FP8 products"},
    NumericVariable{"NVTE_USE_CUTLASS_GROUPED_GEMM", "TransformerEngine: grouped products in CUTLASS"},
    NumericVariable{"NVTE_NVFP4_DISABLE_RHT", "TransformerEngine: no Hadamard transform before NVFP4"},
    NumericVariable{"NVTE_CUDNN_MXFP8_NORM_OUTPUT_IN_INPUT_DTYPE", "TransformerEngine: rounding point of MXFP8 norms"},
    NumericVariable{"NVTE_BACKWARD_OVERRIDE", "TransformerEngine: format of the backward pass"},
    NumericVariable{"NVTE_ALLOW_NONDETERMINISTIC_ALGO", "TransformerEngine: non-deterministic attention backward"},
    NumericVariable{"NVTE_FLASH_ATTN", "TransformerEngine: choice of the attention backend"},
    NumericVariable{"NVTE_FUSED_ATTN", "TransformerEngine: choice of the attention backend"},
    NumericVariable{"NVTE_UNFUSED_ATTN", "TransformerEngine: choice of the attention backend"},
    NumericVariable{"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "PyTorch: TF32 by default"},
    NumericVariable{"OPENBLAS_CORETYPE", "kernels of the reference's BLAS"},
    NumericVariable{"OPENBLAS_NUM_THREADS", "threads of the reference's BLAS"},
    NumericVariable{"TE_NUMCHECK_ISA", "instruction set of our own loops (all give the same bits)"},
};

constexpr std::array<std::string_view, 6> kFamilies{"NVIDIA_TF32", "CUBLAS",   "CUDNN_",
                                                    "NVTE_",       "CUTLASS_", "OPENBLAS_"};

std::string without_path(std::string_view value) {
  return value.find('/') == std::string_view::npos ? std::string(value) : "(path)";
}

bool is_listed(std::string_view name) {
  return std::any_of(kVariables.begin(), kVariables.end(), [&](const auto& row) { return row.name == name; });
}

bool is_of_family(std::string_view name) {
  return std::any_of(kFamilies.begin(), kFamilies.end(), [&](auto prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::span<const NumericVariable> numeric_variables() noexcept {
  return kVariables;
}

std::vector<VariableState> numeric_environment() {
  std::vector<VariableState> states;
  for (const NumericVariable& row : kVariables) {
    const char* value = std::getenv(std::string(row.name).c_str());
    states.push_back({std::string(row.name),
                      value == nullptr ? std::nullopt : std::optional<std::string>(without_path(value)), true});
  }
  const auto unlisted = static_cast<std::ptrdiff_t>(states.size());
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (name.size() < text.size() && is_of_family(name) && !is_listed(name)) {
      states.push_back({std::string(name), without_path(text.substr(name.size() + 1)), false});
    }
  }
  std::sort(states.begin() + unlisted, states.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return states;
}

}  // namespace numcheck::machine
