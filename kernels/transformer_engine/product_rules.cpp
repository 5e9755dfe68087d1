#include "kernels/transformer_engine/product_rules.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "kernels/contract/block_products.hpp"
#include "kernels/transformer_engine/tensor.hpp"
#include "op/gemm_scaling.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

// product_scaling_obstacle() says what the scales of fp4_e2m1 need.
constexpr std::array<std::string_view, 6> kModes = {"tf32", "bf16", "fp16", "fp8_e4m3", "fp8_hybrid", "fp4_e2m1"};

}  // namespace

std::size_t product_workspace(int sm) {
  return sm >= 90 ? (std::size_t{32} << 20) + 1024 : std::size_t{4} << 20;
}

std::string product_mode_obstacle(const op::Mode& mode) {
  if (std::ranges::find(kModes, mode.name) != kModes.end()) {
    return {};
  }
  if (mode.name == "fp32") {
    return "TransformerEngine multiplies FP32 tensors as TF32 (it requests CUBLAS_COMPUTE_32F_FAST_TF32): use the mode "
           "tf32, and NVIDIA_TF32_OVERRIDE=0 for FP32 products";
  }
  return fmt::format("TransformerEngine's products support the modes tf32, bf16, fp16, fp8_e4m3 and fp8_hybrid, not {}",
                     mode.name);
}

std::string fp8_product_obstacle(const Context& context, const op::GemmParams& p) {
  if (const int sm = context.info.sm; sm < 89) {
    return fmt::format("FP8 products need sm_89 or newer; this device is sm_{}", sm);
  }
  if ((p.trans_a || !p.trans_b) && context.library.call(kNonTnFp8Supported) == 0) {
    return fmt::format(
        "on sm_{} TransformerEngine multiplies FP8 tensors only as A B^T and needs transposed copies for other "
        "layouts: set trans_a to false and trans_b to true",
        context.info.sm);
  }
  return {};
}

std::string product_output_obstacle(const op::Mode& mode, const op::GemmParams& p) {
  const core::Dtype output = op::gemm_output_dtype(p, mode);
  if (core::is_fp8(output) && p.beta != 0) {
    return "TransformerEngine does not accumulate into an FP8 output";
  }
  if (p.beta != 0 && !p.in_place) {
    return "TransformerEngine accumulates into D in place: set in_place to true";
  }
  return {};
}

std::string product_size_obstacle(const op::GemmParams& p) {
  constexpr std::int64_t kLargest = std::numeric_limits<int>::max();
  return p.m > kLargest || p.n > kLargest || p.k > kLargest ? "TransformerEngine counts rows and columns in 32 bits"
                                                            : "";
}

std::string product_epilogue_obstacle(const op::GemmParams& p) {
  return p.epilogue == "relu" ? "TransformerEngine's products have no relu epilogue" : "";
}

std::string product_scaling_obstacle(const Context& context, const op::GemmParams& p) {
  if (!op::has_line_scales(p)) {
    return {};
  }
  if (p.scaling == "outer_vector") {
    return "TransformerEngine has no scales of rows and columns";
  }
  if (op::has_scales_in_products(p)) {
    return block_product_obstacle(p, "TransformerEngine", context.info.sm);
  }
  if (context.info.sm != 90) {
    return fmt::format("TransformerEngine multiplies FP8 blocks with FP32 scales on sm_90 only; this device is sm_{}",
                       context.info.sm);
  }
  return p.epilogue == "gelu" ? "TransformerEngine's products of FP8 blocks have no gelu epilogue" : "";
}

int gelu_input_type(core::Dtype output) {
  return core::is_fp8(output) ? static_cast<int>(kBfloat16) : data_type(output);
}

void add_product_options(const op::GemmParams& p, Algorithm& algorithm) {
  const bool gelu = p.epilogue == "gelu";
  if (gelu || p.bias) {
    algorithm.details.emplace_back("epilogue", !gelu ? "BIAS" : p.bias ? "GELU_AUX_BIAS" : "GELU_AUX");
  }
  if (p.in_place) {
    algorithm.details.emplace_back("addend", "in place");
  }
  algorithm.rounding = {.in_place = p.in_place, .bias = p.bias, .gelu = gelu};
}

}  // namespace numcheck::kernels::transformer_engine
