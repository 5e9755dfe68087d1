#include "op/dropout.hpp"

#include "op/output_format.hpp"

namespace numcheck::op {
namespace {

constexpr std::int64_t kGroup = 16;  // elements that TransformerEngine's kernel takes at a time
constexpr std::int64_t kBits = 8;

std::vector<Port> forward_ports(const Params& values, const Mode& mode) {
  const auto p = from_params<DropoutParams>(values);
  return {dense_port("x", Role::input, mode.first, 1, p.elements, "tensor"),
          dense_port("y", Role::output, mode.output, 1, p.elements, "kept elements, scaled"),
          dense_port("mask", Role::output, core::Dtype::uint8, 1, p.elements / kBits, "bits, 1 = kept")};
}

std::vector<Port> backward_ports(const Params& values, const Mode& mode) {
  const auto p = from_params<DropoutParams>(values);
  Port mask = dense_port("mask", Role::input, core::Dtype::uint8, 1, p.elements / kBits, "bits, 1 = kept");
  mask.fill = Fill::derived;
  return {dense_port("dy", Role::input, mode.first, 1, p.elements, "gradient"), mask,
          dense_port("dx", Role::output, mode.output, 1, p.elements, "gradient of the kept elements, scaled")};
}

std::vector<std::string> check(const Params& values, const Mode&) {
  const auto p = from_params<DropoutParams>(values);
  return p.elements % kGroup == 0
             ? std::vector<std::string>()
             : std::vector<std::string>{"dropout: " + std::to_string(p.elements) + " elements, not a multiple of 16"};
}

ExactPlan exact_plan(const Params&, const Mode&) {
  return no_exact_leg("kept elements are divided by 1 - p");
}

double flops(const Params& values) {
  return 2.0 * static_cast<double>(from_params<DropoutParams>(values).elements);
}

}  // namespace

const Op& dropout_fwd() {
  static const Op op{
      .name = "dropout_fwd",
      .summary = "random elements set to zero, the others scaled",
      .formula = "y = mask ? x / (1 - p) : 0, P(mask = 0) = floor(256 p) / 256",
      .source = "TransformerEngine dropout.h, nvte_dropout_fwd",
      .fields = &fields_of<DropoutParams>,
      .modes = storage_modes(),
      .ports = &forward_ports,
      .check = &check,
      .exact_plan = &exact_plan,
      .flops = &flops,
  };
  return op;
}

const Op& dropout_bwd() {
  static const Op op{
      .name = "dropout_bwd",
      .summary = "gradient of dropout",
      .formula = "dx = mask ? dy / (1 - p) : 0",
      .source = "TransformerEngine dropout.h, nvte_dropout_bwd",
      .fields = &fields_of<DropoutParams>,
      .modes = storage_modes(),
      .ports = &backward_ports,
      .check = &check,
      .exact_plan = &exact_plan,
      .flops = &flops,
  };
  return op;
}

}  // namespace numcheck::op
