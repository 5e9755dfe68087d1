#include "op/softmax_bwd.hpp"

#include "op/output_format.hpp"
#include "op/softmax_mask.hpp"

namespace numcheck::op {
namespace {

std::vector<Port> ports(const Params& values, const Mode& mode) {
  const auto p = from_params<SoftmaxBwdParams>(values);
  std::vector<Port> list = {dense_port("dy", Role::input, mode.first, p.sq, p.sk, "gradient of y"),
                            dense_port("y", Role::input, mode.first, p.sq, p.sk, "softmax of each row"),
                            dense_port("dx", Role::output, mode.first, p.sq, p.sk, "gradient of the scores")};
  for (Port& port : list) {
    port.batch = p.batches * p.heads;
  }
  list[1].fill = Fill::derived;
  return list;
}

}  // namespace

const Op& softmax_bwd() {
  static const Op op{
      .name = "softmax_bwd",
      .summary = "gradient of softmax_fwd",
      .formula = "dx = scale (dy y - y sum(dy y)), along each row",
      .source =
          "TransformerEngine softmax.h, nvte_scaled_[masked_ | upper_triang_masked_ | aligned_causal_masked_]"
          "softmax_backward",
      .fields = &fields_of<SoftmaxBwdParams>,
      .modes = storage_modes(),
      .ports = &ports,
      .check =
          [](const Params& values, const Mode&) {
            const auto p = from_params<SoftmaxBwdParams>(values);
            return check_softmax_size("softmax_bwd", p.batches, p.heads, p.sq, p.sk);
          },
      .exact_plan = [](const Params&,
                       const Mode&) { return no_exact_leg("softmax_bwd works on probabilities, which are not exact"); },
      .flops =
          [](const Params& values) {
            constexpr double kPerElement = 5;  // product, sum, product, difference, scale
            const auto p = from_params<SoftmaxBwdParams>(values);
            return kPerElement * static_cast<double>(p.batches * p.heads) * static_cast<double>(p.sq) *
                   static_cast<double>(p.sk);
          },
  };
  return op;
}

}  // namespace numcheck::op
