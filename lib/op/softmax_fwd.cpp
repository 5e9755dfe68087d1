#include "op/softmax_fwd.hpp"

#include "op/output_format.hpp"
#include "op/softmax_mask.hpp"

namespace numcheck::op {
namespace {

Port scores_port(std::string_view name, Role role, const SoftmaxFwdParams& p, const Mode& mode, std::string_view doc) {
  Port port = dense_port(name, role, mode.first, p.sq, p.sk, doc);
  port.batch = p.batches * p.heads;
  return port;
}

std::vector<Port> ports(const Params& values, const Mode& mode) {
  const auto p = from_params<SoftmaxFwdParams>(values);
  std::vector<Port> list = {scores_port("x", Role::input, p, mode, "scores, [batches * heads, sq, sk]")};
  if (p.mask == "arbitrary") {
    Port mask = dense_port("mask", Role::input, core::Dtype::uint8, p.sq, p.sk, "1 = masked, for all heads");
    mask.batch = p.batches;
    mask.fill = Fill::derived;
    list.push_back(mask);
  }
  list.push_back(scores_port("y", Role::output, p, mode, "softmax of each row"));
  return list;
}

}  // namespace

const Op& softmax_fwd() {
  static const Op op{
      .name = "softmax_fwd",
      .summary = "softmax of scaled, masked scores",
      .formula = "t = mask(x scale); y = exp(t - max t) / sum exp(t - max t), along each row",
      .source =
          "TransformerEngine softmax.h, nvte_scaled_[masked_ | upper_triang_masked_ | aligned_causal_masked_]"
          "softmax_forward",
      .fields = &fields_of<SoftmaxFwdParams>,
      .modes = storage_modes(),
      .ports = &ports,
      .check =
          [](const Params& values, const Mode&) {
            const auto p = from_params<SoftmaxFwdParams>(values);
            return check_softmax_size("softmax_fwd", p.batches, p.heads, p.sq, p.sk);
          },
      .exact_plan = [](const Params&,
                       const Mode&) { return no_exact_leg("softmax_fwd involves exponentials: no result is exact"); },
      .flops =
          [](const Params& values) {
            constexpr double kPerElement = 5;  // scale, maximum, difference and exponential, sum, quotient
            const auto p = from_params<SoftmaxFwdParams>(values);
            return kPerElement * static_cast<double>(p.batches * p.heads) * static_cast<double>(p.sq) *
                   static_cast<double>(p.sk);
          },
  };
  return op;
}

}  // namespace numcheck::op
