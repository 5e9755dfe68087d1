#include "op/quantize.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "data/scaling.hpp"
#include "reference/block_quantize.hpp"
#include "reference/casts.hpp"
#include "reference/exact_output.hpp"
#include "reference/independent_rows.hpp"
#include "reference/mistakes.hpp"
#include "reference/nvfp4.hpp"
#include "reference/nvfp4_stochastic.hpp"
#include "reference/quantise_statistics.hpp"
#include "reference/references.hpp"
#include "reference/scale_rule.hpp"

namespace numcheck::reference {
namespace {

std::span<const double> elements_of(const op::Operand& operand) {
  return {operand.data, operand.elements()};
}

op::OutputValues scalar_output(std::string_view port, double value) {
  op::OutputValues out = exact_output(port, 1);
  out.value[0] = value;
  return out;
}

core::Dtype format_of(const op::QuantizeParams& p) {
  return core::parse_dtype(p.format).value_or(core::Dtype::fp8_e4m3);
}

/// Current scaling.
double scale_for(double amax, const op::QuantizeParams& p) {
  const ScaleRule rule{.codes = format_of(p),
                       .epsilon = static_cast<float>(p.epsilon),
                       .power_of_two = p.has_power_of_two(),
                       .at_overflow = std::numeric_limits<float>::max()};
  return static_cast<double>(rule.scale_for(amax));
}

void derive_scale(const op::DeriveRequest& request, std::span<double> values) {
  if (request.port->name != "scale") {
    derive_global_amax(request, values);
    return;
  }
  const auto p = op::from_params<op::QuantizeParams>(*request.params);
  const op::Operand& x = op::operand_named(request.inputs, "x");
  double scale = p.scale;
  if (scale == 0) {
    scale = scale_for(amax_of(elements_of(x)), p);
  }
  std::ranges::fill(values, scale);
}

bool has_blocks(const std::string& recipe) {
  return op::quantize_recipe(recipe) != op::QuantizeRecipe::tensor;
}

bool is_nvfp4(const std::string& recipe) {
  return op::quantize_recipe(recipe) == op::QuantizeRecipe::nvfp4;
}

op::Values quantize_values(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::QuantizeParams>(*request.params);
  if (has_blocks(p.recipe)) {
    return is_nvfp4(p.recipe) ? nvfp4_quantized(request) : block_quantized(request);
  }
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const double scale = op::operand_named(request.inputs, "scale").data[0];
  const double largest = core::dtype_info(format_of(p)).max_finite;
  op::OutputValues q = exact_output("q", x.elements());
  scale_into(elements_of(x), scale, largest, q.value.span());
  op::Values result;
  if (!request.some_rows) {
    // Whatever the layout: cases that differ in it share this reference.
    result.outputs.push_back(
        transposed("q_t", q.value.data(), static_cast<std::size_t>(p.rows), static_cast<std::size_t>(p.cols)));
  }
  result.outputs.insert(result.outputs.begin(), std::move(q));
  result.outputs.push_back(scalar_output("amax", amax_of(elements_of(x))));
  result.outputs.push_back(
      scalar_output("scale_inv", static_cast<double>(data::scale_inverse(static_cast<float>(scale)))));
  return result;
}

op::Values dequantize_values(const op::ReferenceRequest& request) {
  const std::string recipe = op::from_params<op::DequantizeParams>(*request.params).recipe;
  if (has_blocks(recipe)) {
    return is_nvfp4(recipe) ? nvfp4_dequantized(request) : block_dequantized(request);
  }
  const op::Operand& q = op::operand_named(request.inputs, "q");
  op::OutputValues y = exact_output("y", q.elements());
  scale_into(elements_of(q), q.scale, std::numeric_limits<double>::infinity(), y.value.span());
  op::Values result;
  result.outputs.push_back(std::move(y));
  return result;
}

op::Values transpose_values(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::TransposeParams>(*request.params);
  const op::Operand& x = op::operand_named(request.inputs, "x");
  op::Values result;
  result.outputs.push_back(transposed("y", x.data, static_cast<std::size_t>(p.rows), static_cast<std::size_t>(p.cols)));
  return result;
}

void derive_codes(const op::DeriveRequest& request, std::span<double> values) {
  const bool two_levels = is_nvfp4(op::from_params<op::DequantizeParams>(*request.params).recipe);
  two_levels ? derive_nvfp4(request, values) : derive_blocks(request, values);
}

std::vector<std::int64_t> transposed_from(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::TransposeParams>(*request.params);
  std::vector<std::int64_t> sources(static_cast<std::size_t>(p.rows * p.cols));
  core::parallel_for(static_cast<std::size_t>(p.cols), [&](std::size_t c) {
    for (std::int64_t r = 0; r < p.rows; ++r) {
      const auto column = static_cast<std::int64_t>(c);
      sources[static_cast<std::size_t>(column * p.rows + r)] = r * p.cols + column;
    }
  });
  return sources;
}

/// Of codes as they lie, with scales of their own or of the tensor; what is transposed has other rows.
std::optional<op::Params> on_code_rows(const op::Params& params, std::int64_t rows) {
  const auto p = op::from_params<op::QuantizeParams>(params);
  const bool has_rows = !has_blocks(p.recipe) || (p.rowwise().block_rows == 1 && !p.rowwise().scales_transposed &&
                                                  p.block_shape == "1x16" && !p.stochastic && !p.hadamard);
  return p.layout == "rowwise" && has_rows ? on_rows<op::QuantizeParams, &op::QuantizeParams::rows>(params, rows)
                                           : std::nullopt;
}

std::optional<op::Params> on_rows_of_codes(const op::Params& params, std::int64_t rows) {
  return has_blocks(op::from_params<op::DequantizeParams>(params).recipe)
             ? std::nullopt
             : on_rows<op::DequantizeParams, &op::DequantizeParams::rows>(params, rows);
}

bool draws_codes(const op::Params& params) {
  return op::from_params<op::QuantizeParams>(params).stochastic;
}

std::vector<op::Finding> quantize_findings(const op::FindingRequest& request) {
  std::vector<op::Finding> findings = quantise_statistics(request);
  if (draws_codes(*request.params)) {
    std::ranges::move(stochastic_findings(request), std::back_inserter(findings));
  }
  return findings;
}

std::vector<op::ImpossibleDraw> impossible_draws(const op::FindingRequest& request) {
  return draws_codes(*request.params) ? impossible_codes(request) : std::vector<op::ImpossibleDraw>();
}

op::Reference reference_of(op::Values (*values)(const op::ReferenceRequest&), std::string_view version) {
  op::Reference reference;
  reference.values = values;
  reference.version = version;
  reference.defines_bits = true;
  return reference;
}

}  // namespace

op::Reference quantize_reference() {
  op::Reference reference = reference_of(&quantize_values, "quantize-1");
  reference.derive = &derive_scale;
  reference.findings = &quantize_findings;
  reference.gates = stochastic_gates();
  reference.impossible = &impossible_draws;
  reference.row_findings = &quantise_row_statistics;
  reference.mistakes = &quantize_mistakes;
  reference.on_rows = &on_code_rows;
  reference.largest_of_parts = true;
  return reference;
}

op::Reference dequantize_reference() {
  op::Reference reference = reference_of(&dequantize_values, "dequantize-1");
  reference.derive = &derive_codes;
  reference.mistakes = &dequantize_mistakes;
  reference.on_rows = &on_rows_of_codes;
  return reference;
}

op::Reference transpose_reference() {
  op::Reference reference = reference_of(&transpose_values, "transpose-1");
  reference.moved = &transposed_from;
  reference.mistakes = &transpose_mistakes;
  return reference;
}

}  // namespace numcheck::reference
