#include "op/quantize.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "op/mxfp8.hpp"
#include "op/nvfp4.hpp"
#include "op/output_format.hpp"

namespace numcheck::op {
namespace {

using core::Dtype;

Dtype format_of(const std::string& name, Dtype fallback) {
  return core::parse_dtype(name).value_or(fallback);
}

template <class P>
double elements(const Params& values) {
  const auto p = from_params<P>(values);
  return static_cast<double>(p.rows) * static_cast<double>(p.cols);
}

template <class P>
std::vector<std::string> check_size(const Params& values) {
  constexpr double kMaxElements = 0x1p40;
  return elements<P>(values) <= kMaxElements
             ? std::vector<std::string>()
             : std::vector<std::string>{"a tensor of this case has more than 2^40 elements"};
}

/// Whether the format is one of the recipe's.
template <class P>
void add_format_mistakes(std::string_view op, QuantizeRecipe recipe, const P& p, std::vector<std::string>& mistakes) {
  if (recipe == QuantizeRecipe::nvfp4) {
    std::ranges::move(check_nvfp4(p), std::back_inserter(mistakes));
  } else if (p.format == "fp4_e2m1") {
    mistakes.push_back(fmt::format("{}: fp4_e2m1 is the format of the recipe nvfp4 only", op));
  }
}

std::vector<std::string> check_quantize(const Params& values, const Mode& mode) {
  const auto p = from_params<QuantizeParams>(values);
  const QuantizeRecipe recipe = quantize_recipe(p.recipe);
  std::vector<std::string> mistakes = check_size<QuantizeParams>(values);
  if (recipe != QuantizeRecipe::tensor && p.scale != 0) {
    mistakes.push_back("quantize: scale applies to the recipe tensor only; scales of blocks follow from x");
  }
  const bool is_narrow = recipe == QuantizeRecipe::mxfp8 || recipe == QuantizeRecipe::nvfp4;
  const bool follows = !is_narrow && p.scale == 0;
  const std::string_view remedy = recipe == QuantizeRecipe::mxfp8   ? "; those of mxfp8 are powers of two by themselves"
                                  : recipe == QuantizeRecipe::nvfp4 ? "; those of nvfp4 are E4M3 numbers"
                                                                    : ": set scale to 0, or leave it out";
  if (!follows && p.epsilon != 0) {
    mistakes.push_back(fmt::format("quantize: epsilon applies to FP32 scales that follow from an amax{}", remedy));
  }
  if (!follows && p.power_of_two != "default") {
    mistakes.push_back(fmt::format("quantize: power_of_two applies to FP32 scales that follow from an amax{}", remedy));
  }
  for (const auto& [name, number] : {std::pair("scale", p.scale), std::pair("epsilon", p.epsilon)}) {
    if (number != 0 && static_cast<float>(number) == 0) {
      mistakes.push_back(fmt::format("quantize: {} is an FP32 number, which does not hold {:g}", name, number));
    }
  }
  if (recipe != QuantizeRecipe::block_1x128 && p.scale_layout != "gemm_ready") {
    mistakes.push_back("quantize: only the scales of block_1x128 can be compact");
  }
  if (recipe != QuantizeRecipe::mxfp8 && p.rounding != "up") {
    mistakes.push_back("quantize: rounding applies to the recipe mxfp8 only");
  }
  if (recipe != QuantizeRecipe::nvfp4 && p.block_shape != "1x16") {
    mistakes.push_back("quantize: block_shape applies to the recipe nvfp4 only");
  }
  if (recipe != QuantizeRecipe::nvfp4 && p.stochastic) {
    mistakes.push_back("quantize: only the codes of nvfp4 can be rounded at random: set stochastic to false");
  }
  if (p.hadamard && p.layout == "rowwise") {
    mistakes.push_back("quantize: hadamard transforms columns: set layout to columnwise or both");
  }
  if (!p.stochastic && p.rng_seed != QuantizeParams().rng_seed) {
    mistakes.push_back("quantize: rng_seed is of stochastic rounding: set stochastic to true, or leave it out");
  }
  if (p.hadamard && (recipe != QuantizeRecipe::nvfp4 || mode.first != Dtype::bf16)) {
    mistakes.push_back("quantize: hadamard applies to the recipe nvfp4 in the mode bf16 only");
  }
  add_format_mistakes("quantize", recipe, p, mistakes);
  return mistakes;
}

std::vector<std::string> check_dequantize(const Params& values, const Mode&) {
  const auto p = from_params<DequantizeParams>(values);
  const QuantizeRecipe recipe = quantize_recipe(p.recipe);
  std::vector<std::string> mistakes = check_size<DequantizeParams>(values);
  if (recipe != QuantizeRecipe::block_1x128 && p.scale_layout != "gemm_ready") {
    mistakes.push_back("dequantize: only the scales of block_1x128 can be compact");
  }
  if (recipe != QuantizeRecipe::mxfp8 && p.layout != "rowwise") {
    mistakes.push_back("dequantize: layout applies to the recipe mxfp8 only");
  }
  add_format_mistakes("dequantize", recipe, p, mistakes);
  return mistakes;
}

std::vector<std::string> check_transpose(const Params& values, const Mode&) {
  return check_size<TransposeParams>(values);
}

/// Codes of x [rows, cols] as the layout stores them.
Port code_port(const BlockLayout& layout, Dtype format) {
  return layout.codes_transposed
             ? dense_port(layout.codes, Role::output, format, layout.cols, layout.rows, "codes, transposed")
             : dense_port(layout.codes, Role::output, format, layout.rows, layout.cols, "codes");
}

std::vector<Port> quantize_ports(const Params& values, const Mode& mode) {
  const auto p = from_params<QuantizeParams>(values);
  if (quantize_recipe(p.recipe) == QuantizeRecipe::nvfp4) {
    return nvfp4_ports(p, mode.first);
  }
  const Dtype format = format_of(p.format, Dtype::fp8_e4m3);
  std::vector<Port> ports = {dense_port("x", Role::input, mode.first, p.rows, p.cols, "tensor to quantise")};
  if (quantize_recipe(p.recipe) != QuantizeRecipe::tensor) {
    for (const BlockLayout& layout : p.layouts()) {
      ports.push_back(code_port(layout, format));
      ports.push_back(scale_port(layout, Role::output));
    }
    return ports;
  }
  Port scale = dense_port("scale", Role::input, Dtype::fp32, 1, 1, "quantising scale");
  scale.fill = Fill::computed;
  ports.push_back(scale);
  if (p.layout != "columnwise") {
    ports.push_back(dense_port("q", Role::output, format, p.rows, p.cols, "codes"));
  }
  if (p.layout != "rowwise") {
    ports.push_back(dense_port("q_t", Role::output, format, p.cols, p.rows, "codes, transposed"));
  }
  Port amax = scalar_port("amax", Role::amax, "x", "max |x|");
  ports.push_back(amax);
  ports.push_back(dense_port("scale_inv", Role::output, Dtype::fp32, 1, 1, "1 / scale"));
  return ports;
}

ExactPlan quantize_exact_plan(const Params& values, const Mode& mode) {
  return from_params<QuantizeParams>(values).stochastic ? no_exact_leg("codes are rounded at random")
                                                        : small_integers(values, mode);
}

std::vector<Port> dequantize_ports(const Params& values, const Mode& mode) {
  const auto p = from_params<DequantizeParams>(values);
  if (quantize_recipe(p.recipe) == QuantizeRecipe::nvfp4) {
    return nvfp4_ports(p, mode.output);
  }
  Port q = dense_port("q", Role::input, format_of(p.format, Dtype::fp8_e4m3), p.rows, p.cols, "codes");
  Port scale_inv = scalar_port("q_scale_inv", Role::scale, "q", "value = code * q_scale_inv");
  if (quantize_recipe(p.recipe) != QuantizeRecipe::tensor) {
    scale_inv = scale_port(p.blocks(), Role::input);
    q.fill = scale_inv.fill = Fill::derived;
  }
  return {q, scale_inv, dense_port("y", Role::output, mode.output, p.rows, p.cols, "values")};
}

std::vector<Port> transpose_ports(const Params& values, const Mode& mode) {
  const auto p = from_params<TransposeParams>(values);
  const Dtype format = format_of(p.format, mode.first);
  return {dense_port("x", Role::input, format, p.rows, p.cols, "tensor"),
          dense_port("y", Role::output, format, p.cols, p.rows, "its transpose")};
}

}  // namespace

std::vector<BlockLayout> QuantizeParams::layouts() const {
  std::vector<BlockLayout> all;
  if (op::has_rowwise(layout)) {
    all.push_back(rowwise());
  }
  if (op::has_columnwise(layout)) {
    all.push_back(columnwise());
  }
  return all;
}

BlockLayout DequantizeParams::blocks() const {
  const QuantizeRecipe kind = quantize_recipe(recipe);
  const bool compact = scale_layout == "compact";
  BlockLayout blocks = op::has_rowwise(layout) ? rowwise_blocks(kind, compact, rows, cols)
                                               : columnwise_blocks(kind, compact, rows, cols);
  blocks.codes = "q";
  blocks.scales = "q_scale_inv";
  return blocks;
}

namespace {

constexpr std::string_view kQuantizeRules =
    R"(scales, MAX being the largest number of the format, and a = max(amax, epsilon) of the elements that share one:
  tensor, block_1x128, block_128x128
    scale = RN32(MAX / a); 1 if a is 0 or infinite; FLT_MAX if the quotient overflows, of blocks the largest number of x's format
    with power_of_two its mantissa is cleared; stored is scale_inv = RN32(1 / scale); NaN counts in no amax
  mxfp8: 2^(127 - e), of which e is stored (E8M0, 0 to 254)
    up:    e = the exponent of RN32(amax RN32(1 / MAX)), rounded up; 0 for an amax of 0, 254 for infinity
    floor: e = 127 + floor(log2 amax) - floor(log2 MAX): the largest codes of a block may saturate
  nvfp4: S = min(RN32(2688 / global_amax), FLT_MAX), 1 if that amax is 0 or infinite
    d = E4M3(RN32(amax RN32(S RN32(1 / 6)))) is stored; factor = min(RN32(1 / RN32(d RN32(1 / S))), FLT_MAX)
    code = E2M1(RN32(x factor)), two in a byte, the first in the low half; a block whose d is 0 has codes 0 and +-6
    stochastic: up with the probability floor(256 f) / 256, f the way to the next number
    hadamard: columns go through y_k = RN_bf16(1/4 sum_j s_j x_j (-1)^popcount(j & k)), 16 elements at a time, and have an amax of
    their own (global_amax_t)
codes: beyond MAX they are +-MAX, NaN is NaN (in E2M1 +6)
shapes of scales, rows of which are a multiple of 4 elements apart (mxfp8, of columns: 128); padding in between is not written:
  block_1x128    of rows [ceil(cols / 128), rows], of columns [ceil(rows / 128), cols]; compact: as their blocks lie in x, unpadded
  block_128x128  [ceil(rows / 128), ceil(cols / 128)], of transposed codes the transpose of that
  mxfp8          of rows [rows, ceil(cols / 32)], of columns [ceil(rows / 32), cols]
  nvfp4          of rows [rows, ceil(cols / 16)], of columns [cols, ceil(rows / 16)]
)";

}  // namespace

const Op& quantize() {
  static constexpr std::array<std::string_view, 8> kStatistics = {
      "underflow", "overflow",    "saturated codes",    "mse",
      "sqnr",      "dead blocks", "smallest scale_inv", "largest scale_inv"};
  static const Op op{
      .name = "quantize",
      .summary = "cast to FP8 or FP4 with a scale per tensor or per block, row-wise and column-wise",
      .formula = "q = RN(sat(RN32(x scale))); amax = max |x|; scale_inv = RN32(1 / scale)",
      .source = "TransformerEngine cast.h, nvte_quantize",
      .fields = &fields_of<QuantizeParams>,
      .modes = storage_modes(),
      .ports = &quantize_ports,
      .check = &check_quantize,
      .exact_plan = &quantize_exact_plan,
      .flops = &elements<QuantizeParams>,
      .rules = kQuantizeRules,
      .statistics = kStatistics,
  };
  return op;
}

const Op& dequantize() {
  static const Op op{
      .name = "dequantize",
      .summary = "FP8 or FP4 codes times the scale of their tensor or block",
      .formula = "y = RN(RN32(code scale_inv))",
      .source = "TransformerEngine cast.h, nvte_dequantize",
      .fields = &fields_of<DequantizeParams>,
      .modes = storage_modes(),
      .ports = &dequantize_ports,
      .check = &check_dequantize,
      .exact_plan = &small_integers,
      .flops = &elements<DequantizeParams>,
  };
  return op;
}

const Op& transpose() {
  static const Op op{
      .name = "transpose",
      .summary = "transpose of a matrix; only bytes are moved",
      .formula = "y_ji = x_ij",
      .source = "TransformerEngine transpose.h, nvte_transpose",
      .fields = &fields_of<TransposeParams>,
      .modes = storage_modes(),
      .ports = &transpose_ports,
      .check = &check_transpose,
      .exact_plan = &small_integers,
      .flops = &elements<TransposeParams>,
  };
  return op;
}

}  // namespace numcheck::op
