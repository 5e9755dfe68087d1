#include "op/layernorm_bwd.hpp"

#include "op/output_format.hpp"

namespace numcheck::op {
namespace {

std::vector<Port> ports(const Params& values, const Mode& mode) {
  const auto p = from_params<LayernormBwdParams>(values);
  return {norm_matrix("dz", Role::input, mode.first, p, "gradient of y"),
          norm_matrix("x", Role::input, mode.first, p, "input of the forward pass"),
          norm_statistic("mu", Role::input, p, "saved mean of each row"),
          norm_statistic("rsigma", Role::input, p, "saved 1 / standard deviation of each row"),
          norm_weight("gamma", Role::input, mode.first, p, "weight"),
          norm_matrix("dx", Role::output, mode.output, p, "gradient of x"),
          norm_weight("dgamma", Role::output, mode.output, p, "gradient of gamma"),
          norm_weight("dbeta", Role::output, mode.output, p, "gradient of beta")};
}

}  // namespace

const Op& layernorm_bwd() {
  static const Op op{
      .name = "layernorm_bwd",
      .summary = "gradients of layernorm_fwd",
      .formula =
          "xh = rsigma (x - mu); g = (gamma [+ 1]) dz; dx = rsigma (g - mean(g xh) xh - mean(g)); dgamma = "
          "sum(dz xh); dbeta = sum(dz), sums over rows",
      .source = "TransformerEngine normalization.h, nvte_layernorm_bwd",
      .fields = &fields_of<LayernormBwdParams>,
      .modes = storage_modes(),
      .ports = &ports,
      .check = [](const Params& values,
                  const Mode&) { return check_gamma_add("layernorm_bwd", from_params<LayernormBwdParams>(values)); },
      .exact_plan = [](const Params&,
                       const Mode&) { return no_exact_leg("layernorm_bwd involves a root: no result is exact"); },
      .flops = [](const Params& values) { return norm_flops(from_params<LayernormBwdParams>(values), 14); },
  };
  return op;
}

}  // namespace numcheck::op
