#include "verdict/output_model.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "data/inputs.hpp"
#include "prepare/grouping.hpp"
#include "tolerance/tracked_model.hpp"

namespace numcheck::verdict {
namespace {

/// The ports of the pass that computes `output`.
std::vector<op::Port> ports_of_pass(const prepare::PreparedCase& prepared, const op::Port& output) {
  for (const op::Pass& pass : op::passes_of(*prepared.c->op, prepared.c->params)) {
    std::vector<op::Port> ports = pass.op->ports(pass.params, *prepared.c->mode);
    if (output.passed_on && op::find_port(ports, output.name) != nullptr) {
      return ports;
    }
  }
  return prepared.ports;
}

/// The operands that the output is computed from, by position: of those that belong to one output, its own.
std::vector<std::size_t> operands_of(const prepare::PreparedCase& prepared, const op::Port& output) {
  const std::string_view described = output.role == op::Role::amax ? output.of : output.name;
  const std::vector<op::Operand>& all = prepared.rounding->operands;
  std::vector<std::size_t> own;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const op::Port* port = op::find_port(prepared.ports, all[i].port);
    if (port == nullptr || port->of.empty() || port->of == described) {
      own.push_back(i);
    }
  }
  return own;
}

/// True if every generated input of that output's pass is constant.
bool inputs_are_constant(const prepare::PreparedCase& prepared, const op::Port& output) {
  const std::vector<op::Port> ports = ports_of_pass(prepared, output);
  const auto drawn = [](const op::Port& port) { return port.role == op::Role::input && port.is_generated(); };
  return std::ranges::any_of(ports, drawn) && std::ranges::all_of(ports, [&](const op::Port& port) {
           return !drawn(port) ||
                  data::pattern_of(prepared.c->inputs.of(port.name), port.dtype).order == data::Order::constant;
         });
}

/// True if an output has so few different numbers that its elements' errors are few errors, whatever the distribution of the inputs
/// is called: eight values that agree to 16 bits are all rounded alike, and equal columns of FP32 gradients are equal sums.
bool has_few_roundings(const op::OutputValues& values, const op::Port& port, double scale) {
  constexpr std::size_t kFew = 8;  // as in tolerance::has_rms
  if (core::is_integer(port.dtype)) {
    return false;
  }
  const core::Overflow overflow = core::is_fp8(port.dtype) ? core::Overflow::saturate : core::Overflow::ieee;
  std::vector<double> seen;
  for (const double y : values.value.span()) {
    const double stored = std::fabs(core::round_to(y * scale, port.dtype, overflow));
    if (std::isfinite(stored) && std::ranges::find(seen, stored) == seen.end()) {
      seen.push_back(stored);
      if (seen.size() == kFew) {
        return false;
      }
    }
  }
  return true;
}

/// 1 if there are none.
double largest_of_scales(const prepare::Rounding& rounding, std::string_view port) {
  const double largest = rounding.largest_code.find(port)->second;
  return largest == 0 ? 1 : largest;
}

}  // namespace

model::ErrorModel output_model(const EvaluationContext& context, const op::Port& port, model::PrecisionClass expected,
                               const model::AttentionRounding& rounding) {
  const prepare::PreparedCase& prepared = *context.prepared;
  const plan::Case& c = *prepared.c;
  model::ModelRequest request;
  request.params = &c.params;
  request.mode = c.mode;
  request.expected = expected;
  request.converted = context.converted != nullptr;
  request.rounding = rounding;
  request.sm = context.device->sm;
  request.arithmetic = context.arithmetic;
  request.output = port.dtype;
  request.exact_leg = prepare::compares_bits(c);
  const auto scale = prepared.scale.find(port.name);
  request.output_scale = scale == prepared.scale.end() ? 1.0 : static_cast<double>(scale->second);
  const std::vector<op::Operand>& operands = prepared.rounding->operands;
  request.operands = operands;
  const std::vector<std::size_t> own = operands_of(prepared, port);
  const auto format_of = [expected](const op::Operand& operand) {  // the format in which it is multiplied
    return expected == model::PrecisionClass::bf16_inputs ? core::Dtype::bf16 : operand.dtype;
  };
  const auto largest = [&](std::size_t i) { return prepared.rounding->largest_code.find(operands[i].port)->second; };
  const auto smallest = [&](std::size_t i) {
    const auto known = prepared.rounding->smallest_code.find(operands[i].port);
    return known == prepared.rounding->smallest_code.end() ? 0.0 : known->second;
  };
  const auto largest_scale = [&](const op::Operand& operand) {
    const auto codes = std::ranges::find(prepared.ports, operand.port, &op::Port::name);
    return codes == prepared.ports.end() || codes->scaled_by.empty()
               ? operand.scale
               : operand.scale * largest_of_scales(*prepared.rounding, codes->scaled_by);
  };
  if (!own.empty()) {
    const op::Operand& first = operands[own[0]];
    request.first = &first;
    request.first_scale = largest_scale(first);
    request.first_max = largest(own[0]);
    request.first_min = smallest(own[0]);
    request.first_pattern = data::pattern_of(c.inputs.of(first.port), format_of(first));
  }
  if (own.size() > 1) {
    const op::Operand& second = operands[own[1]];
    request.second = &second;
    request.second_scale = largest_scale(second);
    request.second_max = largest(own[1]);
    request.second_min = smallest(own[1]);
    request.second_pattern = data::pattern_of(c.inputs.of(second.port), format_of(second));
  }
  for (std::size_t at = 2; at < own.size(); ++at) {
    const std::size_t i = own[at];
    request.others_max.push_back(largest(i) * std::abs(operands[i].scale));
    const data::Pattern pattern = data::pattern_of(c.inputs.of(operands[i].port), format_of(operands[i]));
    const auto given = std::ranges::find(prepared.ports, operands[i].port, &op::Port::name);
    const bool is_drawn = given == prepared.ports.end() || given->is_generated();  // others follow from what is drawn
    const bool is_ordered = operands[i].elements() > 1 && pattern.order != data::Order::random;
    request.others_ordered = request.others_ordered || (is_drawn && is_ordered);
  }
  request.constant_inputs = inputs_are_constant(prepared, port);
  model::ErrorModel model = context.group->row->error_model(request, port.name);
  if (context.group->row->reference.tracked()) {
    const op::OutputValues& values = expected_values(context, port);
    model.reduction = values.reduction;
    model.one_error = model.one_error || has_few_roundings(values, port, request.output_scale);
    tolerance::widen_for_order(request, model);
    model.slope_slack += model.element_errors ? 0 : tolerance::certain_slope(values, port.dtype);
    if (model.shared_slope) {
      model.slope_slack += model.shared_slope(expected_outputs(context, port));
    }
    if (model.shared_roundings) {
      model.rounding_copies = std::max(model.rounding_copies, model.shared_roundings(expected_outputs(context, port)));
    }
    if (values.bit_exact && !model.exact) {
      model.exact = true;
      model.exact_because = "the op defines this output bit for bit";
      model.source = fmt::format("{}: {}", port.name, model.exact_because);
    }
  }
  return model;
}

}  // namespace numcheck::verdict
