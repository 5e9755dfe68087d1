#include "op/multi_tensor_scale.hpp"

#include <array>

#include <fmt/format.h>

namespace numcheck::op {
namespace {

std::vector<Port> ports(const Params& values, const Mode&) {
  constexpr core::Dtype kFp32 = core::Dtype::fp32;
  const auto p = from_params<MultiTensorScaleParams>(values);
  Port amaxes = dense_port("amaxes", Role::input, kFp32, p.tensors, p.elements, "largest magnitudes, a row per tensor");
  amaxes.fill = Fill::derived;
  return {amaxes, dense_port("scales", Role::output, kFp32, p.tensors, p.elements, "scales that follow from them"),
          dense_port("scale_invs", Role::output, kFp32, p.tensors, p.elements, "1 / scale")};
}

double scales(const Params& values) {
  const auto p = from_params<MultiTensorScaleParams>(values);
  return static_cast<double>(p.tensors) * static_cast<double>(p.elements);
}

std::vector<std::string> check(const Params& values, const Mode&) {
  constexpr double kMaxScales = 0x1p32;
  const auto p = from_params<MultiTensorScaleParams>(values);
  std::vector<std::string> mistakes;
  if (scales(values) > kMaxScales) {
    mistakes.emplace_back("a tensor of this case has more than 2^32 elements");
  }
  if (p.epsilon != 0 && static_cast<float>(p.epsilon) == 0) {
    mistakes.push_back(
        fmt::format("multi_tensor_scale: epsilon is an FP32 number, which does not hold {:g}", p.epsilon));
  }
  return mistakes;
}

}  // namespace

const Op& multi_tensor_scale() {
  static constexpr std::array<std::string_view, 1> kModes = {"fp32"};
  static const Op op{
      .name = "multi_tensor_scale",
      .summary = "FP8 scales of many tensors from their amaxes, in one call, as beside an optimiser's step",
      .formula =
          "scale = RN32(MAX / max(amax, epsilon)), or 1 if that amax is 0, infinite or NaN; scale_inv = RN32(1 / "
          "scale)",
      .source = "TransformerEngine multi_tensor.h, nvte_multi_tensor_compute_scale_and_scale_inv_cuda",
      .fields = &fields_of<MultiTensorScaleParams>,
      .modes = kModes,
      .ports = &ports,
      .check = &check,
      .exact_plan = &small_integers,
      .flops = &scales,
  };
  return op;
}

}  // namespace numcheck::op
