#include "op/attention_fwd.hpp"

#include "op/attention_dropout.hpp"
#include "op/attention_exact.hpp"
#include "op/attention_fp8.hpp"
#include "op/attention_layout.hpp"

namespace numcheck::op {
namespace {

std::vector<Port> ports(const Params& values, const Mode& mode) {
  const auto p = from_params<AttentionFwdParams>(values);
  std::vector<Port> list = attention_inputs(p, mode);
  const auto add = [&list](const std::vector<Port>& more) { list.insert(list.end(), more.begin(), more.end()); };
  if (has_scales(mode)) {
    add(weight_scales());
    add(operand_scales({"q", "k", "v"}));
    add(result_scales({"o"}));
  }
  list.push_back(
      attention_port("o", Role::output, attention_output(mode), p, Side::queries, p.value_channels(), "attention"));
  list.push_back(statistic_port("lse", Role::output, p, "logarithm of the sum of exponentials of each query's scores"));
  if (p.max_logit) {
    list.push_back(statistic_port("max_logit", Role::output, p, "largest score of each query"));
  }
  if (has_scales(mode)) {
    add(amaxes({"s", "o"}));
  }
  return list;
}

std::vector<std::string> check(const Params& values, const Mode& mode) {
  const auto p = from_params<AttentionFwdParams>(values);
  std::vector<std::string> mistakes = check_attention_mode("attention_fwd", p, mode);
  if (p.runs_forward()) {
    mistakes.emplace_back("attention_fwd: statistics are what attention_bwd reads; leave the parameter out");
  }
  return mistakes;
}

/// Large integers for q choose its keys; those of v are small, so that BF16 holds them.
ExactPlan exact_plan(const Params& values, const Mode& mode) {
  if (has_scales(mode)) {
    return no_exact_leg("attention_fwd: E4M3 has too few bits for scores that leave weights of 0 and 1 only");
  }
  std::string obstacle = attention_exact_obstacle(from_params<AttentionFwdParams>(values));
  return obstacle.empty() ? ExactPlan{.max_first = 1 << 20, .max_addend = 127} : no_exact_leg(std::move(obstacle));
}

/// The mask that is drawn, then attention.
std::vector<Pass> passes(const Params& values) {
  const auto p = from_params<AttentionFwdParams>(values);
  std::vector<Pass> list = passes_before_attention(p);
  if (!list.empty()) {
    list.push_back({&attention_fwd(), to_params(p)});
  }
  return list;
}

}  // namespace

const Op& attention_fwd() {
  static const Op op{
      .name = "attention_fwd",
      .summary = "scaled dot-product attention",
      .formula = "s = mask(scale q k^T + bias); lse = log sum exp s; o = dropout(exp(s - lse)) v, for each query",
      .source = "TransformerEngine fused_attn.h, nvte_fused_attn_fwd",
      .fields = &fields_of<AttentionFwdParams>,
      .modes = attention_modes(),
      .ports = &ports,
      .check = &check,
      .exact_plan = &exact_plan,
      .exact_inputs =
          [](const Params& values, const Port& port, std::span<double> drawn) {
            attention_exact_inputs(from_params<AttentionFwdParams>(values), port, drawn);
          },
      .passes = &passes,
      .flops =
          [](const Params& values) {
            const auto p = from_params<AttentionFwdParams>(values);
            return 2 * visible_scores(p) * static_cast<double>(p.d + p.value_channels());
          },
      .multiplies_matrices = true,
  };
  return op;
}

}  // namespace numcheck::op
