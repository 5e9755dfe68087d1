#include "op/activation_bwd.hpp"

#include "op/output_format.hpp"

namespace numcheck::op {
namespace {

std::vector<Port> ports(const Params& values, const Mode& mode) {
  const auto p = from_params<ActivationParams>(values);
  std::vector<Port> list = {
      dense_port("dy", Role::input, mode.first, p.rows, p.hidden, "gradient of the forward output"),
      dense_port("x", Role::input, mode.first, p.rows, input_columns(p), "forward input")};
  add_activation_output(list,
                        dense_port("dx", Role::output, output_dtype(p.output, mode), p.rows, input_columns(p),
                                   "gradient of the forward input"),
                        {p.output, p.layout}, "dx_scale", "dx_amax", kMxfp8Dx);
  return list;
}

}  // namespace

const Op& activation_bwd() {
  static const Op op{
      .name = "activation_bwd",
      .summary = "gradient of an activation function, gated or not",
      .formula = "dx = dy f'(x); gated: da = f'(a) dy b, db = dy f(a) with x = [a, b]",
      .source = "TransformerEngine activation.h, nvte_dgelu and its siblings",
      .fields = &fields_of<ActivationParams>,
      .modes = storage_modes(),
      .ports = &ports,
      .check = [](const Params& values,
                  const Mode&) { return check_activation("activation_bwd", from_params<ActivationParams>(values)); },
      .exact_plan = [](const Params& values,
                       const Mode& mode) { return exact_activation(from_params<ActivationParams>(values), mode); },
      .flops =
          [](const Params& values) {
            const auto p = from_params<ActivationParams>(values);
            return operations_of(activation_kind(p.kind), true) * static_cast<double>(p.rows) *
                   static_cast<double>(p.hidden);
          },
  };
  return op;
}

}  // namespace numcheck::op
