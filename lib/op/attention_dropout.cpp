#include "op/attention_dropout.hpp"

#include <algorithm>
#include <iterator>

#include "op/attention_fp8.hpp"

namespace numcheck::op {
namespace {

std::vector<Port> ports(const Params& values, const Mode& mode) {
  const auto p = from_params<AttentionDropoutParams>(values);
  std::vector<Port> list = attention_lengths(p);
  list.push_back(dropout_mask_port(p, mode, Role::output));
  return list;
}

std::vector<std::string> check(const Params& values, const Mode& mode) {
  const auto p = from_params<AttentionDropoutParams>(values);
  std::vector<std::string> mistakes = check_attention_mode("attention_dropout", p, mode);
  if (!p.draws_mask()) {
    mistakes.emplace_back("attention_dropout: draws a mask; set dropout, and dropout_mask to drawn");
  }
  if (p.max_logit || p.runs_forward()) {
    mistakes.emplace_back(
        "attention_dropout: max_logit and statistics are for attention_fwd and attention_bwd; leave them out");
  }
  return mistakes;
}

/// FP8 attention has no dropout.
std::span<const std::string_view> modes() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> list;
    std::ranges::copy_if(attention_modes(), std::back_inserter(list),
                         [](std::string_view name) { return !find_mode(name)->scaled; });
    return list;
  }();
  return names;
}

}  // namespace

AttentionDropoutParams::AttentionDropoutParams() noexcept {
  dropout = 0.1;
  dropout_mask = "drawn";
}

const Op& attention_dropout() {
  static const Op op{
      .name = "attention_dropout",
      .summary = "the dropout mask that attention draws",
      .formula = "P(mask = 0) = dropout, of each weight",
      .source = "TransformerEngine fused_attn.h, rng_state",
      .fields = &fields_of<AttentionDropoutParams>,
      .modes = modes(),
      .ports = &ports,
      .check = &check,
      .exact_plan = [](const Params&, const Mode&) { return no_exact_leg("attention_dropout: the mask is random"); },
      .flops = [](const Params& values) { return visible_scores(from_params<AttentionDropoutParams>(values)); },
  };
  return op;
}

std::vector<Pass> passes_before_attention(const AttentionParams& p) {
  return p.draws_mask() ? std::vector<Pass>{{&attention_dropout(), to_params(p)}} : std::vector<Pass>();
}

}  // namespace numcheck::op
