// An activation or bias gradient that owns its operands, for the tests of the references.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "op/activation_bwd.hpp"
#include "op/activation_fwd.hpp"
#include "op/bias_grad.hpp"
#include "op/mode.hpp"
#include "op/reference.hpp"
#include "reference/references.hpp"

namespace numcheck::reference::testing {

using Inputs = std::map<std::string, std::vector<double>>;

/// The reference's outputs on those inputs, in FP32's ports.
inline op::Values run_reference(const op::Op& op, const op::Reference& reference, const op::Params& params,
                                const Inputs& inputs, bool values_only = false) {
  op::ReferenceRequest request{.params = &params, .inputs = {}, .sample = {}, .values_only = values_only};
  for (const op::Port& port : op.ports(params, *op::find_mode("fp32"))) {
    if (port.role == op::Role::input) {
      request.inputs.push_back({port.name, inputs.at(std::string(port.name)).data(), 1, port.rows, port.cols});
    }
  }
  return reference.values(request);
}

/// One row of `activation_fwd`.
inline op::Values forward(op::ActivationParams p, const std::vector<double>& x, bool values_only = false) {
  p.rows = 1;
  p.hidden = static_cast<std::int64_t>(op::activation_kind(p.kind).gated ? x.size() / 2 : x.size());
  return run_reference(op::activation_fwd(), activation_fwd_reference(), op::to_params(p), {{"x", x}}, values_only);
}

/// One row of `activation_bwd`.
inline op::Values backward(op::ActivationParams p, const std::vector<double>& dy, const std::vector<double>& x,
                           bool values_only = false) {
  p.rows = 1;
  p.hidden = static_cast<std::int64_t>(dy.size());
  return run_reference(op::activation_bwd(), activation_bwd_reference(), op::to_params(p), {{"dy", dy}, {"x", x}},
                       values_only);
}

inline op::Values bias_gradient(const op::BiasGradParams& p, const std::vector<double>& dy,
                                const std::vector<double>& x = {}) {
  return run_reference(op::bias_grad(), bias_grad_reference(), op::to_params(p), {{"dy", dy}, {"x", x}});
}

inline std::vector<double> value_of(const op::Values& values, std::size_t output = 0) {
  const auto span = values.outputs.at(output).value.span();
  return {span.begin(), span.end()};
}

}  // namespace numcheck::reference::testing
