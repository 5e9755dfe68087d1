// What TransformerEngine's products of two tensors refuse, and what they need: common to single ones and to lists.
#pragma once

#include <cstddef>
#include <string>

#include "kernels/transformer_engine/binding.hpp"
#include "op/gemm.hpp"

namespace numcheck::kernels::transformer_engine {

/// What TransformerEngine's framework bindings give cuBLASLt: 32 MiB and a little from Hopper on, else 4 MiB. The size
/// decides which algorithm runs, and hence the bits. Source: TransformerEngine pytorch/cpp_extensions/gemm.py.
[[nodiscard]] std::size_t product_workspace(int sm);

// Sentences; empty if there is no obstacle.
[[nodiscard]] std::string product_mode_obstacle(const op::Mode& mode);
[[nodiscard]] std::string fp8_product_obstacle(const Context& context, const op::GemmParams& p);
[[nodiscard]] std::string product_output_obstacle(const op::Mode& mode, const op::GemmParams& p);
[[nodiscard]] std::string product_size_obstacle(const op::GemmParams& p);
[[nodiscard]] std::string product_epilogue_obstacle(const op::GemmParams& p);
[[nodiscard]] std::string product_scaling_obstacle(const Context& context, const op::GemmParams& p);

/// Format of what the GELU epilogue saves: D's, or BF16 with an FP8 D.
[[nodiscard]] int gelu_input_type(core::Dtype output);

/// What was requested besides the product, as details of an algorithm and as the rounding that it declares.
void add_product_options(const op::GemmParams& p, Algorithm& algorithm);

}  // namespace numcheck::kernels::transformer_engine
