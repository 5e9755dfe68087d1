#include "kernels/cuda/attention_launch.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "kernels/cuda/port_access.hpp"

namespace numcheck::kernels::cuda {
namespace {

constexpr std::array<std::string_view, 3> kModes = {"fp32", "bf16", "fp16"};

HeadTensor head_tensor(const op::AttentionParams& p, Tensor tensor, std::int64_t heads, std::int64_t positions,
                       std::int64_t channels) {
  // Places are linear in the sequence and in the head.
  const auto place = [&](std::int64_t batch, std::int64_t head) {
    return op::head_place(p, batch, head, heads, positions, channels);
  };
  return {tensor,
          place(1, 0).first,
          place(0, 1).first,
          place(0, 0).stride,
          static_cast<int>(positions),
          static_cast<int>(channels)};
}

ScoreBias bias_of(const op::AttentionParams& p) {
  return p.bias == "pre_scale"    ? ScoreBias::pre_scale
         : p.bias == "post_scale" ? ScoreBias::post_scale
         : p.bias == "alibi"      ? ScoreBias::alibi
                                  : ScoreBias::none;
}

}  // namespace

std::string attention_obstacle(const Call& call) {
  if (std::ranges::find(kModes, call.c->mode->name) == kModes.end()) {
    return fmt::format(
        "te-numcheck's own attention kernels compute in FP32 only, for the modes fp32, bf16 and fp16, not {}",
        call.c->mode->name);
  }
  return {};
}

AttentionRules attention_rules(const op::AttentionParams& p, std::span<const PortMemory> ports, const float* slopes) {
  AttentionRules rules;
  rules.batches = static_cast<int>(p.batches);
  rules.heads = static_cast<int>(p.heads);
  rules.kv_heads = static_cast<int>(p.key_heads());
  rules.sq = static_cast<int>(p.sq);
  rules.sk = static_cast<int>(p.sk);
  rules.scale = static_cast<float>(p.factor());
  rules.softcap = static_cast<float>(p.softcap);
  rules.causal = p.is_causal();
  rules.top_left = p.diagonal(p.sq, p.sk + 1) == p.diagonal(p.sq, p.sk);  // does not depend on the lengths
  rules.window_left = static_cast<int>(p.window_left);
  rules.window_right = static_cast<int>(p.window_right);
  rules.bias_kind = bias_of(p);
  rules.bias = tensor_of(ports, "bias");
  rules.slopes = slopes;
  rules.sink = p.softmax == "learnable" ? Sink::learnable : p.softmax == "off_by_one" ? Sink::one : Sink::none;
  rules.offsets = static_cast<const float*>(address_of(ports, "softmax_offset"));
  rules.q_lengths = static_cast<const int*>(address_of(ports, "q_lengths"));
  rules.kv_lengths = static_cast<const int*>(address_of(ports, "kv_lengths"));
  return rules;
}

std::vector<float> alibi_slopes(const op::AttentionParams& p) {
  std::vector<float> slopes;
  for (std::int64_t head = 0; p.bias == "alibi" && head < p.heads; ++head) {
    slopes.push_back(static_cast<float>(op::alibi_slope(head, p.heads)));
  }
  return slopes;
}

HeadTensor query_tensor(const op::AttentionParams& p, std::span<const PortMemory> ports, std::string_view name,
                        std::int64_t channels) {
  return head_tensor(p, tensor_of(ports, name), p.heads, p.sq, channels);
}

HeadTensor key_tensor(const op::AttentionParams& p, std::span<const PortMemory> ports, std::string_view name,
                      std::int64_t channels) {
  return head_tensor(p, tensor_of(ports, name), p.key_heads(), p.sk, channels);
}

}  // namespace numcheck::kernels::cuda
