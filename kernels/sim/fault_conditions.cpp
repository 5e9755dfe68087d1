#include "kernels/sim/fault_conditions.hpp"

#include <string_view>

#include <fmt/format.h>

#include "op/gemm_scaling.hpp"

namespace numcheck::kernels::sim {
namespace {

using core::Dtype;

bool has_fp32_operands(const SimGemm& g) {
  return g.mode->first == Dtype::fp32;
}

bool is_fp8_output(const SimGemm& g) {
  return g.output == Dtype::fp8_e4m3 || g.output == Dtype::fp8_e5m2;
}

std::string unless(bool condition, std::string_view sentence) {
  return condition ? std::string() : std::string(sentence);
}

}  // namespace

std::string no_obstacle(const SimGemm&) {
  return {};
}

std::string needs_uncut_k(const SimGemm& g) {
  return unless(!op::has_line_scales(g.params) || g.params.scaling == "outer_vector",
                "sums are cut where the scales of blocks change");
}

std::string needs_uncut_stages(const SimGemm& g) {
  const std::string blocks = needs_uncut_k(g);
  return blocks.empty() ? needs_two_stages(g) : blocks;
}

std::string needs_uncut_products(const SimGemm& g) {
  const std::string blocks = needs_uncut_k(g);
  return blocks.empty() ? needs_two_products(g) : blocks;
}

std::string needs_line_scales(const SimGemm& g) {
  return unless(op::has_line_scales(g.params), "each operand has one scale");
}

std::string needs_blocks_along_k(const SimGemm& g) {
  return unless(op::has_line_scales(g.params) && op::scales_of_a(g.params).across() > 1,
                "there are no two blocks along k with scales of their own");
}

std::string needs_scales_of_columns(const SimGemm& g) {
  return unless(op::has_line_scales(g.params) && op::scales_of_b(g.params).down() > 1,
                "there are no two columns of B with scales of their own");
}

std::string needs_table_of_scales(const SimGemm& g) {
  return unless(op::has_line_scales(g.params) && op::scales_of_a(g.params).block_rows == 1 &&
                    op::scales_of_a(g.params).across() > 1 && g.params.m > 1,
                "A has no two rows of two blocks each with a scale of its own");
}

std::string needs_fp32_scales(const SimGemm& g) {
  return unless(op::has_line_scales(g.params) && !g.params.power_of_two && !op::has_scales_in_products(g.params),
                "there are no scales of rows or blocks with more bits than BF16");
}

std::string needs_fp32_class(const SimGemm& g) {
  return unless(has_fp32_operands(g) && !g.uses_tf32(), "the operands are not multiplied in FP32");
}

std::string needs_fp32_operands(const SimGemm& g) {
  return unless(has_fp32_operands(g), "the operands are not FP32");
}

std::string needs_more_than_bf16(const SimGemm& g) {
  return unless(has_fp32_operands(g) || g.mode->first == Dtype::fp16, "the operands have no more bits than BF16");
}

std::string needs_fp32_output(const SimGemm& g) {
  return unless(g.output == Dtype::fp32, "the output is not FP32");
}

std::string needs_bf16_output(const SimGemm& g) {
  return unless(g.output == Dtype::bf16, "the output is not BF16");
}

std::string needs_narrow_output(const SimGemm& g) {
  return unless(g.output != Dtype::fp32, "the output is FP32, so the sum is stored unrounded");
}

std::string needs_fp8_output(const SimGemm& g) {
  return unless(is_fp8_output(g), "the output is not FP8");
}

std::string needs_promotion(const SimGemm& g) {
  if (const std::string blocks = needs_uncut_k(g); !blocks.empty()) {
    return blocks;
  }
  if (!g.arithmetic.promoted) {
    return "partial sums are not promoted in this case";
  }
  return unless(g.params.k > g.arithmetic.promotion_interval,
                fmt::format("k = {} is not longer than the promotion interval of {}", g.params.k,
                            g.arithmetic.promotion_interval));
}

std::string needs_two_products(const SimGemm& g) {
  return unless(g.params.k >= 2, "there is only one product to split");
}

std::string needs_two_stages(const SimGemm& g) {
  return unless(g.params.k >= 128, "k is less than 128");
}

std::string needs_tail_and_next_row(const SimGemm& g) {
  return unless(g.params.k >= 8 && g.params.m > 1, "A needs two rows of at least 8 elements");
}

std::string needs_dense_a(const SimGemm& g) {
  return unless(g.a_is_dense && g.params.m > 1 && g.params.k > 1,
                "A must be dense and have more than one row and column to be misread as its transpose");
}

std::string needs_square_output(const SimGemm& g) {
  return unless(g.params.m == g.params.n && g.params.m > 1, "D is not square");
}

std::string needs_beta(const SimGemm& g) {
  return unless(g.params.beta != 0, "beta is 0");
}

std::string needs_narrow_addend(const SimGemm& g) {
  return g.params.beta == 0 ? needs_beta(g) : needs_narrow_output(g);
}

std::string needs_narrow_epilogue(const SimGemm& g) {
  const bool changes = g.params.bias || g.params.epilogue == "gelu";  // relu of a rounded sum is the rounded relu
  return changes ? needs_narrow_output(g) : "there is neither bias nor gelu";
}

std::string needs_bias(const SimGemm& g) {
  return unless(g.params.bias, "there is no bias");
}

std::string needs_relu(const SimGemm& g) {
  return unless(g.params.epilogue == "relu", "the epilogue is not relu");
}

std::string needs_gelu(const SimGemm& g) {
  return unless(g.params.epilogue == "gelu", "the epilogue is not gelu");
}

std::string needs_wide_accumulator(const SimGemm& g) {
  return unless(!has_fp32_operands(g) && g.arithmetic.kind != model::Arithmetic::Kind::fp16_chain,
                has_fp32_operands(g) ? "the operands are FP32" : "the accumulator is FP16 already");
}

}  // namespace numcheck::kernels::sim
