#include "op/attention_fwd.hpp"

#include <array>

namespace numcheck::op {
namespace {

constexpr std::array<std::string_view, 4> kModes = {"fp32", "tf32", "bf16", "fp16"};

Port lengths_port(std::string_view name, const AttentionParams& p, std::string_view doc) {
  Port port = dense_port(name, Role::input, core::Dtype::int32, p.batches, 1, doc);
  port.fill = Fill::derived;
  return port;
}

std::vector<Port> ports(const Params& values, const Mode& mode) {
  const auto p = from_params<AttentionFwdParams>(values);
  const std::int64_t width = p.value_channels();
  std::vector<Port> list = {
      attention_port("q", Role::input, mode.first, p, p.sq, p.heads, p.d, "queries"),
      attention_port("k", Role::input, mode.first, p, p.sk, p.key_heads(), p.d, "keys"),
      attention_port("v", Role::input, mode.first, p, p.sk, p.key_heads(), width, "values"),
  };
  if (p.has_bias_tensor()) {
    Port bias = dense_port("bias", Role::input, mode.first, p.sq, p.sk, "added to the scores of every sequence");
    bias.batch = p.heads;
    bias.batch_stride = p.sq * p.sk;
    list.push_back(bias);
  }
  if (p.softmax == "learnable") {
    list.push_back(dense_port("softmax_offset", Role::input, core::Dtype::fp32, p.heads, 1,
                              "logarithm of what the denominator has besides the keys"));
  }
  if (p.has_lengths()) {
    list.push_back(lengths_port("q_lengths", p, "queries of each sequence"));
    list.push_back(lengths_port("kv_lengths", p, "keys of each sequence"));
  }
  list.push_back(attention_port("o", Role::output, mode.output, p, p.sq, p.heads, width, "attention"));
  list.push_back(dense_port("lse", Role::output, core::Dtype::fp32, p.batches * p.heads, p.sq,
                            "logarithm of the sum of exponentials of each query's scores"));
  return list;
}

}  // namespace

const Op& attention_fwd() {
  static const Op op{
      .name = "attention_fwd",
      .summary = "scaled dot-product attention",
      .formula = "s = mask(scale q k^T + bias); lse = log sum exp s; o = exp(s - lse) v, for each query",
      .source = "TransformerEngine fused_attn.h, nvte_fused_attn_fwd",
      .fields = &fields_of<AttentionFwdParams>,
      .modes = kModes,
      .ports = &ports,
      .check = [](const Params& values,
                  const Mode&) { return check_attention("attention_fwd", from_params<AttentionFwdParams>(values)); },
      .exact_plan = [](const Params&,
                       const Mode&) { return no_exact_leg("attention_fwd involves exponentials: no result is exact"); },
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
