#include "op/moe.hpp"

#include <array>

#include "op/output_format.hpp"

namespace numcheck::op {
namespace {

using core::Dtype;

template <class P>
Port row_map(const P& p) {
  Port map = dense_port("row_id_map", Role::input, Dtype::int32, p.topk * p.tokens, 1, "row of each copy, or -1");
  map.fill = Fill::derived;
  return map;
}

template <class P>
std::vector<std::string> check_copies(const Params& values, const Mode&) {
  const auto p = from_params<P>(values);
  std::vector<std::string> mistakes;
  if (p.dropped > p.topk * p.tokens) {
    mistakes.push_back("moe: cannot drop " + std::to_string(p.dropped) + " copies, there are only " +
                       std::to_string(p.topk * p.tokens));
  }
  constexpr double kMaxElements = 0x1p40;
  if (static_cast<double>(p.topk * p.tokens) * static_cast<double>(p.hidden) > kMaxElements) {
    mistakes.emplace_back("moe: the copies have more than 2^40 elements");
  }
  return mistakes;
}

template <class P>
double copy_flops(const Params& values) {
  const auto p = from_params<P>(values);
  return 2.0 * static_cast<double>(p.topk * p.tokens) * static_cast<double>(p.hidden);
}

std::vector<Port> permute_ports(const Params& values, const Mode& mode) {
  const auto p = from_params<MoePermuteParams>(values);
  return {dense_port("x", Role::input, mode.first, p.tokens, p.hidden, "tokens"), row_map(p),
          dense_port("y", Role::output, mode.first, p.topk * p.tokens - p.dropped, p.hidden, "copies, by expert")};
}

std::vector<Port> unpermute_ports(const Params& values, const Mode& mode) {
  const auto p = from_params<MoeUnpermuteParams>(values);
  std::vector<Port> ports = {
      dense_port("x", Role::input, mode.first, p.topk * p.tokens - p.dropped, p.hidden, "rows, by expert"), row_map(p)};
  if (p.probs) {
    ports.push_back(dense_port("probs", Role::input, Dtype::fp32, p.tokens, p.topk, "weights of the experts"));
  }
  ports.push_back(dense_port("y", Role::output, mode.output, p.tokens, p.hidden, "tokens"));
  return ports;
}

std::vector<Port> router_ports(const Params& values, const Mode& mode) {
  const auto p = from_params<RouterTopkParams>(values);
  return {dense_port("logits", Role::input, mode.first, p.tokens, p.experts, "the router's outputs"),
          dense_port("probs", Role::output, mode.output, p.tokens, p.experts, "weights, 0 for experts not chosen"),
          dense_port("routing_map", Role::output, Dtype::uint8, p.tokens, p.experts, "1 for the chosen experts")};
}

std::vector<std::string> check_router(const Params& values, const Mode&) {
  const auto p = from_params<RouterTopkParams>(values);
  return p.topk <= p.experts ? std::vector<std::string>()
                             : std::vector<std::string>{"router_topk: topk " + std::to_string(p.topk) +
                                                        " is more than the " + std::to_string(p.experts) + " experts"};
}

}  // namespace

const Op& moe_permute() {
  static const Op op{
      .name = "moe_permute",
      .summary = "rows of tokens, copied to their experts",
      .formula = "y[map[k tokens + t]] = x[t]",
      .source = "TransformerEngine permutation.h, nvte_permute",
      .fields = &fields_of<MoePermuteParams>,
      .modes = storage_modes(),
      .ports = &permute_ports,
      .check = &check_copies<MoePermuteParams>,
      .exact_plan = &small_integers,
      .flops = &copy_flops<MoePermuteParams>,
  };
  return op;
}

const Op& moe_unpermute() {
  static const Op op{
      .name = "moe_unpermute",
      .summary = "rows of the experts, summed for each token",
      .formula = "y[t] = sum_k probs[t, k] x[map[k tokens + t]], each step rounded to the tensor's format",
      .source = "TransformerEngine permutation.h, nvte_unpermute",
      .fields = &fields_of<MoeUnpermuteParams>,
      .modes = storage_modes(),
      .ports = &unpermute_ports,
      .check = &check_copies<MoeUnpermuteParams>,
      .exact_plan = [](const Params&,
                       const Mode&) { return no_exact_leg("partial sums are rounded to the tensor's format"); },
      .flops = &copy_flops<MoeUnpermuteParams>,
  };
  return op;
}

const Op& router_topk() {
  static const Op op{
      .name = "router_topk",
      .summary = "the best experts of every token and their weights",
      .formula = "chosen = the topk largest scores of a row; probs = scaling score [/ (sum of the chosen + 1e-20)]",
      .source = "TransformerEngine fused_router.h, nvte_fused_topk_with_score_function_forward",
      .fields = &fields_of<RouterTopkParams>,
      .modes = storage_modes(),
      .ports = &router_ports,
      .check = &check_router,
      .exact_plan = [](const Params&,
                       const Mode&) { return no_exact_leg("scores are exponentials: no result is exact"); },
      .flops =
          [](const Params& values) {
            const auto p = from_params<RouterTopkParams>(values);
            return 20.0 * static_cast<double>(p.tokens) * static_cast<double>(p.experts);
          },
  };
  return op;
}

}  // namespace numcheck::op
