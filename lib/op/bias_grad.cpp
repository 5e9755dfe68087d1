#include "op/bias_grad.hpp"

#include <algorithm>
#include <cmath>

#include "op/activation_kind.hpp"
#include "op/activation_params.hpp"
#include "op/output_format.hpp"

namespace numcheck::op {
namespace {

std::vector<Port> ports(const Params& values, const Mode& mode) {
  const auto p = from_params<BiasGradParams>(values);
  const auto matrix = [&p](std::string_view name, Role role, core::Dtype dtype, std::string_view doc) {
    return dense_port(name, role, dtype, p.rows, p.hidden, doc);
  };
  std::vector<Port> list = {matrix("dy", Role::input, mode.first, "gradient")};
  if (p.fused != "none") {
    list.push_back(matrix("x", Role::input, mode.first, "input of the activation"));
  }
  if (p.has_dx()) {
    const std::string_view doc = "gradient of the activation's input; without an activation, dy";
    add_activation_output(list, matrix("dx", Role::output, output_dtype(p.output, mode), doc), {p.output, p.layout},
                          "dx_scale", "dx_amax", kMxfp8Dx);
  }
  if (p.has_transpose()) {
    Port transpose =
        dense_port("dx_t", Role::output, output_dtype(p.output, mode), p.hidden, p.rows, "codes of dx, transposed");
    transpose.of = "dx";
    list.push_back(transpose);
  }
  list.push_back(dense_port("dbias", Role::output, mode.first, 1, p.hidden, "column sums"));
  return list;
}

std::vector<std::string> check(const Params& values, const Mode& mode) {
  const auto p = from_params<BiasGradParams>(values);
  if (!p.has_dx() && p.output != "default") {
    return {"bias_grad: output is the format of dx, which there is with an activation, or with cast = true"};
  }
  if (p.cast && p.fused != "none") {
    return {"bias_grad: cast is for sums without an activation; with " + p.fused + ", dx has the format output anyway"};
  }
  if (p.cast && !core::is_fp8(output_dtype(p.output, mode))) {
    return {"bias_grad: with cast, output is an FP8 or MXFP8 format, such as fp8_e4m3, not " + p.output};
  }
  const bool has_codes = p.has_dx() && core::is_fp8(output_dtype(p.output, mode));
  if (p.layout == "rowwise" || is_mxfp8(p.output) || (p.layout == "both" && has_codes)) {
    return {};
  }
  return {"bias_grad: layout is both, or columnwise, for an MXFP8 dx, and both for an FP8 one, but " + p.layout +
          " is not for output " + p.output};
}

/// FP32 sums of integers are exact up to 2^24 in any order.
ExactPlan exact_plan(const Params& values, const Mode& mode) {
  constexpr std::int64_t kMostSum = std::int64_t{1} << 24;
  const auto p = from_params<BiasGradParams>(values);
  if (p.fused != "none" && !activation_kind(p.fused).rational) {
    return no_exact_leg("the gradient of " + p.fused + " involves an exponential: no result is exact");
  }
  ExactPlan plan = small_integers(values, mode);
  const std::int64_t per_row = kMostSum / std::max<std::int64_t>(1, p.rows);
  if (p.fused == "srelu") {  // terms are 2 x dy
    const auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(per_row) / 2));
    plan.max_first = std::min(plan.max_first, root);
    plan.max_second = std::min(plan.max_second, root);
  } else {
    plan.max_first = std::min(plan.max_first, per_row);
  }
  if (plan.max_first < 1) {
    return no_exact_leg("no integers are small enough for sums over so many rows");
  }
  return plan;
}

double flops(const Params& values) {
  const auto p = from_params<BiasGradParams>(values);
  const double gradient = p.fused == "none" ? 0 : operations_of(activation_kind(p.fused), true);
  return (1 + gradient) * static_cast<double>(p.rows) * static_cast<double>(p.hidden);
}

}  // namespace

const Op& bias_grad() {
  static const Op op{
      .name = "bias_grad",
      .summary = "gradient of a bias: column sums, alone or fused with the backward activation",
      .formula = "dbias_j = sum_i g_ij with g = dy or g = dx = dy f'(x)",
      .source = "TransformerEngine cast.h, nvte_quantize_dbias and nvte_quantize_dbias_d<activation>",
      .fields = &fields_of<BiasGradParams>,
      .modes = storage_modes(),
      .ports = &ports,
      .check = &check,
      .exact_plan = &exact_plan,
      .flops = &flops,
  };
  return op;
}

}  // namespace numcheck::op
