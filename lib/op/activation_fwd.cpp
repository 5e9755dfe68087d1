#include "op/activation_fwd.hpp"

#include "op/output_format.hpp"

namespace numcheck::op {
namespace {

std::vector<Port> ports(const Params& values, const Mode& mode) {
  const auto p = from_params<ActivationParams>(values);
  std::vector<Port> list = {dense_port("x", Role::input, mode.first, p.rows, input_columns(p), "input")};
  add_activation_output(list,
                        dense_port("y", Role::output, output_dtype(p.output, mode), p.rows, p.hidden, "activated rows"),
                        {p.output, p.layout}, "y_scale", "y_amax", kMxfp8Y);
  return list;
}

}  // namespace

const Op& activation_fwd() {
  static const Op op{
      .name = "activation_fwd",
      .summary = "activation function, gated or not",
      .formula = "y = f(x); gated: y = f(a) b with x = [a, b]",
      .source = "TransformerEngine activation.h, nvte_gelu and its siblings",
      .fields = &fields_of<ActivationParams>,
      .modes = storage_modes(),
      .ports = &ports,
      .check = [](const Params& values,
                  const Mode&) { return check_activation("activation_fwd", from_params<ActivationParams>(values)); },
      .exact_plan = [](const Params& values,
                       const Mode& mode) { return exact_activation(from_params<ActivationParams>(values), mode); },
      .flops =
          [](const Params& values) {
            const auto p = from_params<ActivationParams>(values);
            return operations_of(activation_kind(p.kind), false) * static_cast<double>(p.rows) *
                   static_cast<double>(p.hidden);
          },
  };
  return op;
}

}  // namespace numcheck::op
