#include "op/activation_params.hpp"

#include "op/output_format.hpp"

namespace numcheck::op {

std::int64_t input_columns(const ActivationParams& params) {
  return activation_kind(params.kind).gated ? 2 * params.hidden : params.hidden;
}

bool has_fast_sigmoid(const ActivationKind& kind) {
  return kind.gated && (kind.function == Activation::silu || kind.function == Activation::clamped);
}

std::vector<std::string> check_activation(std::string_view op, const ActivationParams& params) {
  const ActivationParams defaults;
  const bool given =
      params.limit != defaults.limit || params.alpha != defaults.alpha || params.offset != defaults.offset;
  if (given && activation_kind(params.kind).function != Activation::clamped) {
    return {std::string(op) + ": limit, alpha and offset apply to the kind clamped_swiglu only, not to " + params.kind};
  }
  if (params.sigmoid == "fast" && (op != "activation_bwd" || !has_fast_sigmoid(activation_kind(params.kind)))) {
    return {std::string(op) + ": a fast sigmoid applies only to activation_bwd with the kind swiglu or clamped_swiglu"};
  }
  return check_layout(op, params.output, params.layout);
}

void add_activation_output(std::vector<Port>& ports, const Port& output, const OutputChoice& chosen,
                           std::string_view scale_name, std::string_view amax_name, const Mxfp8Names& names) {
  if (is_mxfp8(chosen.format)) {
    add_mxfp8_output(ports, output, names, chosen.layout);
  } else {
    add_output(ports, output, scale_name, amax_name);
  }
}

ExactPlan exact_activation(const ActivationParams& params, const Mode& mode) {
  if (activation_kind(params.kind).rational) {
    return small_integers({}, mode);
  }
  return no_exact_leg(params.kind + " involves an exponential: no result is exact");
}

double operations_of(const ActivationKind& kind, bool backward) {
  constexpr double kRational = 2;
  constexpr double kExponential = 20;
  return (kind.rational ? kRational : kExponential) * (backward ? 2 : 1) + (kind.gated ? 1 : 0);
}

}  // namespace numcheck::op
