#include "op/attention_bwd.hpp"

#include <fmt/format.h>

#include "op/attention_dropout.hpp"
#include "op/attention_fp8.hpp"
#include "op/attention_fwd.hpp"
#include "op/attention_layout.hpp"

namespace numcheck::op {
namespace {

/// o and lse: derived inputs, or outputs of a forward pass that runs before.
std::vector<Port> passed_ports(const AttentionParams& p, const Mode& mode) {
  const Role role = p.runs_forward() ? Role::output : Role::input;
  std::vector<Port> list = {
      attention_port("o", role, mode.first, p, Side::queries, p.value_channels(), "output of the forward pass"),
      statistic_port("lse", role, p, "log-sum-exp of the forward pass")};
  for (Port& port : list) {
    port.fill = p.runs_forward() ? Fill::generated : Fill::computed;
    port.passed_on = p.runs_forward();
  }
  return list;
}

std::vector<Port> ports(const Params& values, const Mode& mode) {
  const auto p = from_params<AttentionBwdParams>(values);
  const std::int64_t width = p.value_channels();
  const core::Dtype gradient = attention_gradient(mode);
  std::vector<Port> list = attention_inputs(p, mode);
  const auto add = [&list](const std::vector<Port>& more) { list.insert(list.end(), more.begin(), more.end()); };
  list.push_back(attention_port("do", Role::input, gradient, p, Side::queries, width, "gradient of the output"));
  add(passed_ports(p, mode));
  if (has_scales(mode)) {
    add(weight_scales());
    add(score_gradient_scales());
    add(operand_scales({"q", "k", "v", "do", "o"}));
    add(result_scales({"dq", "dk", "dv"}));
  }
  list.push_back(attention_port("dq", Role::output, gradient, p, Side::queries, p.d, "gradient of the queries"));
  list.push_back(attention_port("dk", Role::output, gradient, p, Side::keys, p.d, "gradient of the keys"));
  list.push_back(attention_port("dv", Role::output, gradient, p, Side::keys, width, "gradient of the values"));
  if (p.has_bias_tensor()) {
    list.push_back(attention_bias_port("dbias", Role::output, p, mode, "gradient of the bias"));
  }
  if (p.softmax == "learnable") {
    list.push_back(
        dense_port("dsoftmax_offset", Role::output, core::Dtype::fp32, p.heads, 1, "gradient of the offset"));
  }
  if (has_scales(mode)) {
    add(amaxes({"dp", "dq", "dk", "dv"}));
  }
  return list;
}

std::vector<std::string> check(const Params& values, const Mode& mode) {
  const auto p = from_params<AttentionBwdParams>(values);
  std::vector<std::string> mistakes = check_attention_mode("attention_bwd", p, mode);
  if (p.max_logit) {
    mistakes.emplace_back("attention_bwd: max_logit is an output of attention_fwd; leave it out");
  }
  if (p.runs_forward() && has_scales(mode)) {
    mistakes.push_back(
        fmt::format("attention_bwd: mode {} has no statistics of the device: set statistics to reference", mode.name));
  }
  if (p.draws_mask() && !p.runs_forward()) {
    mistakes.emplace_back(
        "attention_bwd: o and lse of a mask that is drawn are known only on the device: set statistics to device");
  }
  return mistakes;
}

std::vector<Pass> passes(const Params& values) {
  auto p = from_params<AttentionBwdParams>(values);
  if (!p.runs_forward()) {
    return {};
  }
  p.statistics = "reference";
  std::vector<Pass> list = passes_before_attention(p);
  list.push_back({&attention_fwd(), to_params(p)});
  list.push_back({&attention_bwd(), to_params(p)});
  return list;
}

}  // namespace

const Op& attention_bwd() {
  static const Op op{
      .name = "attention_bwd",
      .summary = "gradients of scaled dot-product attention",
      .formula = "p = exp(s - lse); ds = p (do v^T - rowsum(do o)); dq = scale ds k; dk = scale ds^T q; dv = p^T do",
      .source = "TransformerEngine fused_attn.h, nvte_fused_attn_bwd",
      .fields = &fields_of<AttentionBwdParams>,
      .modes = attention_modes(),
      .ports = &ports,
      .check = &check,
      .exact_plan =
          [](const Params&, const Mode&) {
            return no_exact_leg("attention_bwd: weights are exact only where dq and dk are all 0");
          },
      .passes = &passes,
      .flops =
          [](const Params& values) {
            const auto p = from_params<AttentionBwdParams>(values);
            const std::int64_t forward = p.runs_forward() ? p.d + p.value_channels() : 0;
            return 2 * visible_scores(p) * static_cast<double>(3 * p.d + 2 * p.value_channels() + forward);
          },
      .multiplies_matrices = true,
  };
  return op;
}

}  // namespace numcheck::op
