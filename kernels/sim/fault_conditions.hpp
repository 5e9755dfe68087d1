// When an arithmetic fault can change a case: each condition returns the sentence that says why not; empty if it can.
#pragma once

#include <string>

#include "kernels/sim/gemm.hpp"

namespace numcheck::kernels::sim {

[[nodiscard]] std::string no_obstacle(const SimGemm& g);
[[nodiscard]] std::string needs_fp32_class(const SimGemm& g);
[[nodiscard]] std::string needs_fp32_operands(const SimGemm& g);
[[nodiscard]] std::string needs_more_than_bf16(const SimGemm& g);
[[nodiscard]] std::string needs_fp32_output(const SimGemm& g);
[[nodiscard]] std::string needs_bf16_output(const SimGemm& g);
[[nodiscard]] std::string needs_narrow_output(const SimGemm& g);
[[nodiscard]] std::string needs_fp8_output(const SimGemm& g);
[[nodiscard]] std::string needs_promotion(const SimGemm& g);
[[nodiscard]] std::string needs_two_products(const SimGemm& g);
[[nodiscard]] std::string needs_two_stages(const SimGemm& g);
[[nodiscard]] std::string needs_tail_and_next_row(const SimGemm& g);
[[nodiscard]] std::string needs_dense_a(const SimGemm& g);
[[nodiscard]] std::string needs_square_output(const SimGemm& g);
[[nodiscard]] std::string needs_beta(const SimGemm& g);
[[nodiscard]] std::string needs_narrow_addend(const SimGemm& g);
[[nodiscard]] std::string needs_narrow_epilogue(const SimGemm& g);
[[nodiscard]] std::string needs_bias(const SimGemm& g);
[[nodiscard]] std::string needs_relu(const SimGemm& g);
[[nodiscard]] std::string needs_gelu(const SimGemm& g);
[[nodiscard]] std::string needs_wide_accumulator(const SimGemm& g);
[[nodiscard]] std::string needs_uncut_k(const SimGemm& g);
[[nodiscard]] std::string needs_uncut_stages(const SimGemm& g);
[[nodiscard]] std::string needs_uncut_products(const SimGemm& g);
[[nodiscard]] std::string needs_line_scales(const SimGemm& g);
[[nodiscard]] std::string needs_blocks_along_k(const SimGemm& g);
[[nodiscard]] std::string needs_scales_of_columns(const SimGemm& g);
[[nodiscard]] std::string needs_table_of_scales(const SimGemm& g);
[[nodiscard]] std::string needs_fp32_scales(const SimGemm& g);

}  // namespace numcheck::kernels::sim
