#include "op/layernorm_fwd.hpp"

#include "op/output_format.hpp"

namespace numcheck::op {
namespace {

std::vector<Port> ports(const Params& values, const Mode& mode) {
  const auto p = from_params<LayernormFwdParams>(values);
  std::vector<Port> list = {norm_matrix("x", Role::input, mode.first, p, "input"),
                            norm_weight("gamma", Role::input, mode.first, p, "weight"),
                            norm_weight("beta", Role::input, mode.first, p, "bias")};
  add_output(list, norm_matrix("y", Role::output, output_dtype(p.output, mode), p, "normalised rows"), "y_scale",
             "y_amax");
  list.push_back(norm_statistic("mu", Role::output, p, "mean of each row"));
  list.push_back(norm_statistic("rsigma", Role::output, p, "1 / standard deviation of each row"));
  return list;
}

std::vector<std::string> check(const Params& values, const Mode& mode) {
  const auto p = from_params<LayernormFwdParams>(values);
  std::vector<std::string> mistakes = check_output("layernorm_fwd", p.output, mode);
  std::vector<std::string> more = check_gamma_add("layernorm_fwd", p);
  mistakes.insert(mistakes.end(), more.begin(), more.end());
  return mistakes;
}

}  // namespace

const Op& layernorm_fwd() {
  static const Op op{
      .name = "layernorm_fwd",
      .summary = "normalisation of rows by mean and standard deviation",
      .formula =
          "mu = mean(x); rsigma = 1 / sqrt(mean((x - mu)^2) + epsilon); y = (gamma [+ 1]) rsigma (x - mu) + beta",
      .source = "TransformerEngine normalization.h, nvte_layernorm_fwd",
      .fields = &fields_of<LayernormFwdParams>,
      .modes = storage_modes(),
      .ports = &ports,
      .check = &check,
      .exact_plan = [](const Params&,
                       const Mode&) { return no_exact_leg("layernorm_fwd involves a root: no result is exact"); },
      .flops = [](const Params& values) { return norm_flops(from_params<LayernormFwdParams>(values), 7); },
  };
  return op;
}

}  // namespace numcheck::op
