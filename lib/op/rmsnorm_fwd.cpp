#include "op/rmsnorm_fwd.hpp"

#include "op/output_format.hpp"

namespace numcheck::op {
namespace {

std::vector<Port> ports(const Params& values, const Mode& mode) {
  const auto p = from_params<RmsnormFwdParams>(values);
  std::vector<Port> list = {norm_matrix("x", Role::input, mode.first, p, "input"),
                            norm_weight("gamma", Role::input, mode.first, p, "weight")};
  add_output(list, norm_matrix("y", Role::output, output_dtype(p.output, mode), p, "normalised rows"), "y_scale",
             "y_amax");
  list.push_back(norm_statistic("rsigma", Role::output, p, "1 / root mean square of each row"));
  return list;
}

std::vector<std::string> check(const Params& values, const Mode& mode) {
  const auto p = from_params<RmsnormFwdParams>(values);
  std::vector<std::string> mistakes = check_output("rmsnorm_fwd", p.output, mode);
  std::vector<std::string> more = check_gamma_add("rmsnorm_fwd", p);
  mistakes.insert(mistakes.end(), more.begin(), more.end());
  return mistakes;
}

}  // namespace

const Op& rmsnorm_fwd() {
  static const Op op{
      .name = "rmsnorm_fwd",
      .summary = "root-mean-square normalisation of rows",
      .formula = "rsigma = 1 / sqrt(mean(x^2) + epsilon); y = x rsigma (gamma [+ 1])",
      .source = "TransformerEngine normalization.h, nvte_rmsnorm_fwd",
      .fields = &fields_of<RmsnormFwdParams>,
      .modes = storage_modes(),
      .ports = &ports,
      .check = &check,
      .exact_plan = [](const Params&,
                       const Mode&) { return no_exact_leg("rmsnorm_fwd involves a root: no result is exact"); },
      .flops = [](const Params& values) { return norm_flops(from_params<RmsnormFwdParams>(values), 4); },
  };
  return op;
}

}  // namespace numcheck::op
