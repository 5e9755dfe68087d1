// Mistakes in formulas that no other parameters give: wrong operands, and wrong code.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "core/buffer.hpp"
#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"
#include "op/bias_grad.hpp"
#include "op/dropout.hpp"
#include "op/moe.hpp"
#include "op/quantize.hpp"
#include "reference/block_quantize.hpp"
#include "reference/casts.hpp"
#include "reference/mistake_list.hpp"
#include "reference/mistakes.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

op::OutputValues* find_output(op::Values& values, std::string_view port) {
  const auto found = std::ranges::find(values.outputs, port, &op::OutputValues::port);
  return found == values.outputs.end() ? nullptr : &*found;
}

/// What the reference makes of inputs of which one holds the same number everywhere.
op::Values with_constant(const op::Reference& reference, op::ReferenceRequest request, std::string_view port,
                         double number) {
  core::Buffer<double> constant;
  for (op::Operand& operand : request.inputs) {
    if (operand.port == port) {
      constant = core::Buffer<double>(operand.elements());
      std::ranges::fill(constant.span(), number);
      operand.data = constant.data();
    }
  }
  return reference.values(request);
}

op::Values unscaled_codes(const op::ReferenceRequest& request) {
  op::Values values = with_constant(quantize_reference(), request, "scale", 1);
  std::erase_if(values.outputs, [](const op::OutputValues& output) { return output.port == "scale_inv"; });
  return values;
}

op::Values unsaturated_codes(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::QuantizeParams>(*request.params);
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const auto scale = static_cast<float>(op::operand_named(request.inputs, "scale").data[0]);
  // Halfway from the largest number to the one that would follow it.
  const core::Dtype format = core::parse_dtype(p.format).value_or(core::Dtype::fp8_e4m3);
  const double largest = core::dtype_info(format).max_finite;
  const double limit = largest + core::ulp(largest, format) / 2;
  op::Values values = quantize_reference().values(request);
  if (!(std::fabs(static_cast<double>(static_cast<float>(amax_of({x.data, x.elements()})) * scale)) > limit)) {
    return values;
  }
  op::OutputValues* codes = find_output(values, "q");
  op::OutputValues* turned = find_output(values, "q_t");  // null if only some rows are wanted
  const auto rows = static_cast<std::size_t>(p.rows), cols = static_cast<std::size_t>(p.cols);
  for (std::size_t i = 0; i < x.elements(); ++i) {
    if (std::fabs(static_cast<double>(static_cast<float>(x.data[i]) * scale)) > limit) {
      codes->value[i] = kNan;
      if (turned != nullptr) {
        turned->value[i % cols * rows + i / cols] = kNan;
      }
    }
  }
  return values;
}

op::Values codes_as_they_lie(const op::ReferenceRequest& request) {
  op::Values values = quantize_reference().values(request);
  std::ranges::copy(find_output(values, "q")->value.span(), find_output(values, "q_t")->value.data());
  return values;
}

op::Values amax_of_values(const op::ReferenceRequest& request) {
  const op::Operand& x = op::operand_named(request.inputs, "x");
  op::Values values;
  op::OutputValues& amax = values.outputs.emplace_back();
  amax.port = "amax";
  amax.value = core::Buffer<double>(1);
  amax.value[0] = largest_value({x.data, x.elements()});
  return values;
}

op::Values all_kept(const op::ReferenceRequest& request) {
  constexpr double kEightBits = 255;
  return with_constant(dropout_bwd_reference(), request, "mask", kEightBits);
}

/// Codes as if they had no scale.
op::Values dequantized_without_scale(const op::ReferenceRequest& request) {
  op::ReferenceRequest unscaled = request;
  for (op::Operand& operand : unscaled.inputs) {
    operand.scale = 1;
  }
  return dequantize_reference().values(unscaled);
}

op::Values dequantized_without_scales(const op::ReferenceRequest& request) {
  return with_constant(dequantize_reference(), request, "q_scale_inv", 1);
}

op::Values matrix_as_it_lies(const op::ReferenceRequest& request) {
  op::Values values = transpose_reference().values(request);
  const op::Operand& x = op::operand_named(request.inputs, "x");
  std::copy_n(x.data, x.elements(), values.outputs.front().value.data());
  return values;
}

/// Copies in the order of their tokens, wherever their places are.
op::Values rows_in_order(const op::ReferenceRequest& request) {
  const op::Operand& x = op::operand_named(request.inputs, "x");
  op::Values values = moe_permute_reference().values(request);
  const std::span<double> y = values.outputs.front().value.span();
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = x.data[i % x.elements()];
  }
  return values;
}

op::Values mean_of_rows(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::BiasGradParams>(*request.params);
  op::Values values = bias_grad_reference().values(request);
  for (double& sum : find_output(values, "dbias")->value.span()) {
    sum /= static_cast<double>(p.rows);
  }
  return values;
}

/// dbias of a dx that is stored in the format first.
template <core::Dtype kFormat>
op::Values sums_of_rounded(const op::ReferenceRequest& request) {
  op::Values values = bias_grad_reference().values(request);
  const std::span<const double> dx = find_output(values, "dx")->value.span();
  const std::span<double> sums = find_output(values, "dbias")->value.span();
  std::ranges::fill(sums, 0);
  for (std::size_t i = 0; i < dx.size(); ++i) {
    sums[i % sums.size()] += core::round_to(dx[i], kFormat);
  }
  return values;
}

op::Values without_row_sums(const op::ReferenceRequest& request) {
  return with_constant(attention_bwd_reference(), request, "o", 0);
}

/// Exchanges the halves of every row.
void swap_halves(std::span<double> values, std::size_t columns) {
  for (std::size_t row = 0; row + columns <= values.size(); row += columns) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(row);
    const auto half = static_cast<std::ptrdiff_t>(columns / 2);
    std::swap_ranges(first, first + half, first + half);
  }
}

/// What the reference makes of an x whose halves are exchanged.
op::Values of_swapped_halves(const op::Reference& reference, op::ReferenceRequest request) {
  core::Buffer<double> swapped;
  for (op::Operand& operand : request.inputs) {
    if (operand.port == "x") {
      swapped = core::Buffer<double>(operand.elements());
      std::copy_n(operand.data, operand.elements(), swapped.data());
      swap_halves(swapped.span(), static_cast<std::size_t>(operand.cols));
      operand.data = swapped.data();
    }
  }
  return reference.values(request);
}

}  // namespace

op::Values activation_of_swapped_halves(const op::ReferenceRequest& request) {
  return of_swapped_halves(activation_fwd_reference(), request);
}

op::Values gradients_of_swapped_halves(const op::ReferenceRequest& request) {
  op::Values values = of_swapped_halves(activation_bwd_reference(), request);
  swap_halves(find_output(values, "dx")->value.span(),
              static_cast<std::size_t>(op::operand_named(request.inputs, "x").cols));
  return values;
}

op::Values attention_without_sink(const op::ReferenceRequest& request) {
  auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  p.softmax = "vanilla";
  const op::Params params = op::to_params(p);
  op::ReferenceRequest without = request;
  without.params = &params;
  std::erase_if(without.inputs, [](const op::Operand& operand) { return operand.port == "softmax_offset"; });
  return attention_fwd_reference().values(without);
}

op::Values attention_with_scale_of_keys(const op::ReferenceRequest& request) {
  op::ReferenceRequest other = request;
  std::ranges::find(other.inputs, "v", &op::Operand::port)->scale = op::operand_named(request.inputs, "k").scale;
  return op::find_operand(request.inputs, "do") == nullptr ? attention_fwd_reference().values(other)
                                                           : attention_bwd_reference().values(other);
}

op::Values rotated_back(const op::ReferenceRequest& request) {
  const bool forward = op::find_operand(request.inputs, "x") != nullptr;
  op::ReferenceRequest other = request;
  for (op::Operand& operand : other.inputs) {
    if (operand.port == "x" || operand.port == "dy") {
      operand.port = forward ? "dy" : "x";
    }
  }
  op::Values values = (forward ? rope_bwd_reference() : rope_fwd_reference()).values(other);
  values.outputs.front().port = forward ? "y" : "dx";
  return values;
}

op::Values mean_of_experts(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::MoeUnpermuteParams>(*request.params);
  op::Values values = moe_unpermute_reference().values(request);
  for (double& sum : values.outputs.front().value.span()) {
    sum /= static_cast<double>(p.topk);
  }
  return values;
}

std::vector<op::Mistake> dequantize_mistakes(const op::Params& params, const op::Mode&) {
  Mistakes<op::DequantizeParams> mistakes(params);
  if (mistakes.p.recipe == "tensor") {
    mistakes.add_instead("scale_ignored", "the scale from 1", &dequantized_without_scale);
  } else {
    mistakes.add_instead("scale_ignored", "the scales from 1", &dequantized_without_scales);
  }
  return mistakes.take();
}

std::vector<op::Mistake> transpose_mistakes(const op::Params& params, const op::Mode&) {
  Mistakes<op::TransposeParams> mistakes(params);
  mistakes.add_instead("untransposed", "the transpose from the matrix as it lies", &matrix_as_it_lies);
  return mistakes.take();
}

std::vector<op::Mistake> moe_permute_mistakes(const op::Params& params, const op::Mode&) {
  Mistakes<op::MoePermuteParams> mistakes(params);
  mistakes.add_instead("unpermuted", "places of the map from the order of tokens", &rows_in_order);
  return mistakes.take();
}

std::vector<op::Mistake> quantize_mistakes(const op::Params& params, const op::Mode&) {
  Mistakes<op::QuantizeParams> mistakes(params);
  if (op::quantize_recipe(mistakes.p.recipe) != op::QuantizeRecipe::tensor) {
    return mistakes.p.recipe == "nvfp4" ? nvfp4_quantize_mistakes(params) : block_quantize_mistakes(params);
  }
  mistakes.add_of_all_rows("amax_of_values", "the largest magnitude from the largest value", &amax_of_values);
  mistakes.add_instead("scale_ignored", "the scale from 1", &unscaled_codes);
  mistakes.add_instead("saturate_missing", "saturated codes from NaN", &unsaturated_codes);
  if (mistakes.p.layout != "rowwise") {
    mistakes.add_instead("untransposed", "the transpose from the codes as they lie", &codes_as_they_lie);
  }
  return mistakes.take();
}

std::vector<op::Mistake> dropout_bwd_mistakes(const op::Params& params, const op::Mode&) {
  using P = op::DropoutParams;
  Mistakes<P> mistakes(params);
  if (mistakes.p.p > 0) {
    mistakes.add("scale_missing", "1 / (1 - p) from 1", [](P& p) { p.p = 0; });
  }
  if (mistakes.p.dropped_share() != mistakes.p.p) {
    mistakes.add("scale_of_share", "1 / (1 - p) from one over the share that is kept",
                 [](P& p) { p.p = p.dropped_share(); });
  }
  mistakes.add_instead("mask_ignored", "the mask from none", &all_kept);
  return mistakes.take();
}

std::vector<op::Mistake> bias_grad_mistakes(const op::Params& params, const op::Mode& mode) {
  using P = op::BiasGradParams;
  Mistakes<P> mistakes(params);
  add_other_functions(mistakes, &P::fused);
  if (mistakes.p.rows > 1) {
    mistakes.add_instead("mean_for_sum", "sums over rows from means", &mean_of_rows);
  }
  if (mistakes.p.fused != "none" && mistakes.p.output == "default" && mode.output == core::Dtype::bf16) {
    mistakes.add_instead("rounded_first", "sums of dx from sums of what is stored",
                         &sums_of_rounded<core::Dtype::bf16>);
  }
  if (mistakes.p.fused != "none" && mistakes.p.output == "default" && mode.output == core::Dtype::fp16) {
    mistakes.add_instead("rounded_first", "sums of dx from sums of what is stored",
                         &sums_of_rounded<core::Dtype::fp16>);
  }
  return mistakes.take();
}

std::vector<op::Mistake> attention_bwd_mistakes(const op::Params& params, const op::Mode& mode) {
  Mistakes<op::AttentionBwdParams> mistakes(params);
  add_attention(mistakes);
  if (mode.scaled) {
    mistakes.add_instead("value_descale_of_keys", "the scale of v from that of k", &attention_with_scale_of_keys);
  }
  mistakes.add_instead("row_sums_missing", "gradients of weights less D from these gradients", &without_row_sums);
  return mistakes.take();
}

}  // namespace numcheck::reference
