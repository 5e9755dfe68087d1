#include "op/rmsnorm_bwd.hpp"

#include "op/output_format.hpp"

namespace numcheck::op {
namespace {

std::vector<Port> ports(const Params& values, const Mode& mode) {
  const auto p = from_params<RmsnormBwdParams>(values);
  std::vector<Port> list = {norm_matrix("dz", Role::input, mode.first, p, "gradient of y"),
                            norm_matrix("x", Role::input, mode.first, p, "input of the forward pass"),
                            norm_statistic("rsigma", Role::input, p, "saved 1 / root mean square of each row"),
                            norm_weight("gamma", Role::input, mode.first, p, "weight")};
  if (p.add) {
    list.push_back(norm_matrix("add", Role::input, mode.first, p, "gradient of the residual branch"));
  }
  list.push_back(norm_matrix("dx", Role::output, mode.output, p, "gradient of x"));
  list.push_back(norm_weight("dgamma", Role::output, mode.output, p, "gradient of gamma"));
  return list;
}

}  // namespace

const Op& rmsnorm_bwd() {
  static const Op op{
      .name = "rmsnorm_bwd",
      .summary = "gradients of rmsnorm_fwd",
      .formula =
          "xh = rsigma x; g = (gamma [+ 1]) dz; dx = rsigma (g - mean(g xh) xh) [+ add]; dgamma = sum(dz xh) "
          "over rows",
      .source = "TransformerEngine normalization.h, nvte_rmsnorm_bwd and nvte_rmsnorm_bwd_add",
      .fields = &fields_of<RmsnormBwdParams>,
      .modes = storage_modes(),
      .ports = &ports,
      .check = [](const Params& values,
                  const Mode&) { return check_gamma_add("rmsnorm_bwd", from_params<RmsnormBwdParams>(values)); },
      .exact_plan = [](const Params&,
                       const Mode&) { return no_exact_leg("rmsnorm_bwd involves a root: no result is exact"); },
      .flops = [](const Params& values) { return norm_flops(from_params<RmsnormBwdParams>(values), 10); },
  };
  return op;
}

}  // namespace numcheck::op
