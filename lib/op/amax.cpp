#include "op/amax.hpp"

#include <fmt/format.h>

#include "op/output_format.hpp"

namespace numcheck::op {
namespace {

std::vector<Port> ports(const Params& values, const Mode& mode) {
  const auto p = from_params<AmaxParams>(values);
  std::vector<Port> list = {dense_port("x", Role::input, mode.first, p.rows, p.cols, "tensor"),
                            dense_port("amax", Role::output, core::Dtype::fp32, 1, 1, "max |x|")};
  if (p.has_scale()) {
    list.push_back(dense_port("scale", Role::output, core::Dtype::fp32, 1, 1, "scale that follows from amax"));
  }
  return list;
}

double elements(const Params& values) {
  const auto p = from_params<AmaxParams>(values);
  return static_cast<double>(p.rows) * static_cast<double>(p.cols);
}

std::vector<std::string> check(const Params& values, const Mode&) {
  constexpr double kMaxElements = 0x1p40;
  const auto p = from_params<AmaxParams>(values);
  std::vector<std::string> mistakes;
  if (elements(values) > kMaxElements) {
    mistakes.emplace_back("a tensor of this case has more than 2^40 elements");
  }
  if (!p.has_scale() && p.epsilon != 0) {
    mistakes.emplace_back("amax: epsilon applies to the scale: set format, or leave epsilon out");
  }
  if (!p.has_scale() && p.power_of_two) {
    mistakes.emplace_back("amax: power_of_two applies to the scale: set format, or leave power_of_two out");
  }
  if (p.epsilon != 0 && static_cast<float>(p.epsilon) == 0) {
    mistakes.push_back(fmt::format("amax: epsilon is an FP32 number, which does not hold {:g}", p.epsilon));
  }
  return mistakes;
}

}  // namespace

const Op& amax() {
  static const Op op{
      .name = "amax",
      .summary = "largest magnitude of a tensor, and the FP8 scale that follows from it, as in current scaling",
      .formula = "amax = max |x|, NaN dropped; scale = RN32(MAX / max(amax, epsilon)), or 1 if that is 0 or infinite",
      .source = "TransformerEngine recipe.h, nvte_compute_amax and nvte_compute_scale_from_amax",
      .fields = &fields_of<AmaxParams>,
      .modes = storage_modes(),
      .ports = &ports,
      .check = &check,
      .exact_plan = &small_integers,
      .flops = &elements,
  };
  return op;
}

}  // namespace numcheck::op
