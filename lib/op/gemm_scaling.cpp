#include "op/gemm_scaling.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "op/mxfp8.hpp"
#include "op/nvfp4.hpp"

namespace numcheck::op {
namespace {

constexpr std::int64_t kBlock = 128;

/// Scales of a matrix with rows of `k` elements.
BlockLayout layout_of(std::string_view matrix, std::string_view scales, std::string_view blocks, std::int64_t rows,
                      std::int64_t k) {
  BlockLayout layout;
  if (blocks == "vector") {
    layout = {.rows = rows, .cols = k, .block_cols = std::max<std::int64_t>(k, 1), .scales_transposed = true};
  } else {
    const auto recipe = blocks == "1x128"   ? QuantizeRecipe::block_1x128
                        : blocks == "mxfp8" ? QuantizeRecipe::mxfp8
                        : blocks == "nvfp4" ? QuantizeRecipe::nvfp4
                                            : QuantizeRecipe::block_128x128;
    layout = rowwise_blocks(recipe, false, rows, k);
  }
  layout.codes = matrix;
  layout.scales = scales;
  return layout;
}

/// Its parts of "A_B", "vector", "mxfp8" or "nvfp4".
std::string_view part_of(const GemmParams& p, bool first) {
  const std::string_view scaling = p.scaling;
  if (scaling == "outer_vector") {
    return "vector";
  }
  if (has_scales_in_products(p)) {
    return scaling;
  }
  const std::size_t between = scaling.find('_');
  if (between == std::string_view::npos) {
    throw core::InternalError("gemm: a tensor with one scale has no scales of rows or blocks");
  }
  return first ? scaling.substr(0, between) : scaling.substr(between + 1);
}

}  // namespace

bool has_line_scales(const GemmParams& params) noexcept {
  return params.scaling != "tensor";
}

bool has_scales_in_products(const GemmParams& params) noexcept {
  return params.scaling == "mxfp8" || has_global_scales(params);
}

bool has_global_scales(const GemmParams& params) noexcept {
  return params.scaling == "nvfp4";
}

std::int64_t scaled_products(const GemmParams& params) noexcept {
  if (has_scales_in_products(params)) {
    return has_global_scales(params) ? kNvfp4Block : kMxfp8Block;
  }
  return params.scaling == "outer_vector" ? std::max<std::int64_t>(params.k, 1) : kBlock;
}

BlockLayout scales_of_a(const GemmParams& params) {
  return layout_of("a", "a_scale_inv", part_of(params, true), params.m, params.k);
}

BlockLayout scales_of_b(const GemmParams& params) {
  return layout_of("b", "b_scale_inv", part_of(params, false), params.n, params.k);
}

std::vector<std::string> scaling_mistakes(const GemmParams& params, const Mode& mode) {
  std::vector<std::string> mistakes;
  if (has_global_scales(params) != (mode.first == core::Dtype::fp4_e2m1)) {
    mistakes.push_back(has_global_scales(params)
                           ? "gemm: scaling \"nvfp4\" is for E2M1 operands: set mode to fp4_e2m1, not to " +
                                 std::string(mode.name)
                           : "gemm: mode fp4_e2m1 has one way to scale its operands: set scaling to nvfp4");
    return mistakes;
  }
  if (!has_line_scales(params)) {
    if (params.power_of_two) {
      mistakes.emplace_back("gemm: power_of_two is about scales of rows and blocks: set scaling, too");
    }
    return mistakes;
  }
  if (!mode.scaled) {
    mistakes.push_back("gemm: scaling \"" + params.scaling + "\" applies to FP8 modes only, not to " +
                       std::string(mode.name));
    return mistakes;
  }
  if (params.trans_a || !params.trans_b) {
    mistakes.push_back(
        "gemm: scaling \"" + params.scaling +
        "\" is for operands that are stored with k within rows: set trans_a to false and trans_b to true");
  }
  if (params.batch > 1) {
    mistakes.push_back("gemm: scaling \"" + params.scaling + "\" is for one product: set batch to 1");
  }
  if (has_scales_in_products(params) && params.power_of_two) {
    mistakes.emplace_back(has_global_scales(params)
                              ? "gemm: scales of nvfp4 are E4M3 numbers: leave power_of_two out"
                              : "gemm: scales of mxfp8 are powers of two whatever power_of_two says: leave it out");
  }
  if (params.accumulate == "fast" && has_scales_in_products(params)) {
    mistakes.push_back("gemm: products of " + params.scaling +
                       " have one way to accumulate, in FP32, so that accumulate cannot be fast");
  } else if (params.accumulate == "fast" && params.scaling != "outer_vector") {
    mistakes.push_back(
        "gemm: scaling \"" + params.scaling +
        "\" multiplies the sum of every 128 products by their scales, so that accumulate cannot be fast");
  }
  if (core::is_fp8(gemm_output_dtype(params, mode))) {
    mistakes.push_back("gemm: scaling \"" + params.scaling + "\" has no FP8 output; it has fp32, bf16 and fp16");
  }
  return mistakes;
}

void gemm_exact_inputs(const Params& params, const Port& port, std::span<double> values) {
  const auto p = from_params<GemmParams>(params);
  if (!has_line_scales(p) || (port.name != "a_scale_inv" && port.name != "b_scale_inv")) {
    return;
  }
  for (double& value : values) {
    value = value > 0 ? 2 : 1;  // of both signs are equally many
  }
}

}  // namespace numcheck::op
