// Mistakes in casts to NVFP4.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/buffer.hpp"
#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "op/mxfp8.hpp"
#include "op/nvfp4.hpp"
#include "op/quantize.hpp"
#include "reference/casts.hpp"
#include "reference/exact_output.hpp"
#include "reference/mistake_list.hpp"
#include "reference/nvfp4.hpp"
#include "reference/nvfp4_layout.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

const op::Operand& x_of(const op::ReferenceRequest& request) {
  return op::operand_named(request.inputs, "x");
}

/// The column-wise codes and scales of what is transformed in another way, or not at all.
op::Values columns_of(const op::ReferenceRequest& request, bool hadamard, bool has_signs) {
  auto p = op::from_params<op::QuantizeParams>(*request.params);
  std::vector<op::Operand> inputs = request.inputs;
  const double amax = op::operand_named(inputs, "global_amax_t").data[0];
  for (op::Operand& operand : inputs) {
    operand.data = operand.port == "global_amax" ? &amax : operand.data;
  }
  p.hadamard = hadamard;
  Nvfp4Scaled made = Nvfp4Layout(p, inputs, p.columnwise(), has_signs).scaled();
  op::Values values;
  values.outputs.push_back(exact_output("q_t", nvfp4_bytes(made.values.span())));
  values.outputs.push_back(exact_output("scale_inv_t", std::move(made.scales)));
  return values;
}

op::Values untransformed_columns(const op::ReferenceRequest& request) {
  return columns_of(request, false, true);
}

op::Values columns_without_signs(const op::ReferenceRequest& request) {
  return columns_of(request, true, false);
}

/// The reference's outputs, with other scales than those that follow from the amax of x.
op::Values with_amax(const op::ReferenceRequest& request, double amax) {
  op::ReferenceRequest other = request;
  for (op::Operand& operand : other.inputs) {
    if (operand.port.starts_with("global_amax")) {
      operand.data = &amax;
    }
  }
  return nvfp4_quantized(other);
}

/// With 2688 the tensor's scale is 1.
op::Values without_global_scale(const op::ReferenceRequest& request) {
  return with_amax(request, static_cast<double>(op::kNvfp4Largest));
}

op::Values with_stale_amax(const op::ReferenceRequest& request) {
  constexpr double kStale = 0.75;
  return with_amax(request, kStale * op::operand_named(request.inputs, "global_amax").data[0]);
}

op::Values unscaled(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::QuantizeParams>(*request.params);
  const op::Operand& x = x_of(request);
  op::Values values;
  for (const op::BlockLayout& layout : p.layouts()) {
    const Nvfp4Layout source(p, request.inputs, layout);
    values.outputs.push_back(exact_output(layout.codes, nvfp4_bytes({source.matrix().data, x.elements()})));
  }
  return values;
}

op::Values swapped_halves(const op::ReferenceRequest& request) {
  constexpr unsigned kCodeBits = 4, kByte = 0xFF;
  op::Values values = nvfp4_quantized(request);
  for (std::size_t i = 0; i < values.outputs.size(); i += 2) {  // codes and scales take turns
    for (double& byte : values.outputs[i].value.span()) {
      const auto bits = static_cast<unsigned>(byte);
      byte = static_cast<double>((bits << kCodeBits | bits >> kCodeBits) & kByte);
    }
  }
  return values;
}

/// What follows from the other kind of blocks. Other parameters would not do: 16 x 16 is not made a few rows at a time.
op::Values other_blocks(const op::ReferenceRequest& request) {
  auto p = op::from_params<op::QuantizeParams>(*request.params);
  p.block_shape = p.block_shape == "1x16" ? "16x16" : "1x16";
  const op::Params params = op::to_params(p);
  op::ReferenceRequest other = request;
  other.params = &params;
  return nvfp4_quantized(other);
}

/// The column-wise codes of kernels that transpose what they have scaled by rows.
op::Values columnwise_of_rows(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::QuantizeParams>(*request.params);
  const Nvfp4Rule rule(op::operand_named(request.inputs, "global_amax").data[0]);
  const Nvfp4Scaled rows = nvfp4_scaled({x_of(request).data, p.rows, p.cols, false}, rule);
  const op::OutputValues turned =
      transposed("q_t", rows.values.data(), static_cast<std::size_t>(p.rows), static_cast<std::size_t>(p.cols));
  op::Values values;
  values.outputs.push_back(exact_output("q_t", nvfp4_bytes(turned.value.span())));
  return values;
}

}  // namespace

std::vector<op::Mistake> nvfp4_quantize_mistakes(const op::Params& params) {
  Mistakes<op::QuantizeParams> mistakes(params);
  if (mistakes.p.stochastic) {  // only the scales are known
    mistakes.add_instead("global_scale_ignored", "the tensor's scale from 1", &without_global_scale);
    mistakes.add_instead("global_amax_stale", "the tensor's amax from that of another tensor", &with_stale_amax);
    return mistakes.take();
  }
  mistakes.add_instead("scale_ignored", "the scales from 1", &unscaled);
  mistakes.add_instead("global_scale_ignored", "the tensor's scale from 1", &without_global_scale);
  mistakes.add_instead("global_amax_stale", "the tensor's amax from that of another tensor", &with_stale_amax);
  mistakes.add_instead("halves_swapped", "bytes from those whose halves are swapped", &swapped_halves);
  if (mistakes.p.rows > 1 && !mistakes.p.hadamard) {
    mistakes.add_instead("other_blocks", "blocks of 16 elements from those of 16 x 16", &other_blocks);
  }
  if (op::has_columnwise(mistakes.p.layout) && mistakes.p.hadamard) {
    mistakes.add_instead("hadamard_missing", "transformed columns from those of x", &untransformed_columns);
    mistakes.add_instead("hadamard_unsigned", "the signs of the transform from none", &columns_without_signs);
  } else if (op::has_columnwise(mistakes.p.layout) && mistakes.p.block_shape == "1x16") {
    mistakes.add_instead("columnwise_of_rowwise_scales", "column-wise codes from those of the row-wise scales",
                         &columnwise_of_rows);
  }
  return mistakes.take();
}

}  // namespace numcheck::reference
