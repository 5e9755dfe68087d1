#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "eligibility/attention_gates.hpp"
#include "kernels/harness/mask_probe.hpp"
#include "kernels/transformer_engine/attention_call.hpp"
#include "kernels/transformer_engine/attention_config.hpp"
#include "kernels/transformer_engine/attention_memory.hpp"
#include "kernels/transformer_engine/bindings.hpp"
#include "kernels/transformer_engine/launch.hpp"
#include "op/attention_fp8.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

using op::AttentionParams;

/// What TransformerEngine's users get instead of a case that its fused attention lacks.
constexpr std::string_view kFallback =
    "TransformerEngine's PyTorch layer falls back to UnfusedDotProductAttention: try the backend unfused";

/// What the library cannot be told, or computes otherwise.
std::string interface_obstacle(const Context& context, const op::Mode& mode, const AttentionParams& p) {
  const std::string gate =
      eligibility::first_refusal(eligibility::Selector::fused_interface, p,
                                 circumstances_of(mode, context.info.sm, AttentionPass::training_forward));
  return gate.empty() ? gate : fmt::format("{}; {}", gate, kFallback);
}

/// What its users get, but not for inputs that they choose.
std::string case_obstacle(const Context& context, const op::Mode& mode, const AttentionParams& p) {
  return eligibility::first_refusal(eligibility::Selector::fused_case, p,
                                    circumstances_of(mode, context.info.sm, AttentionPass::training_forward));
}

std::string size_obstacle(const AttentionParams& p) {
  const bool fits = p.batches <= std::numeric_limits<std::int32_t>::max() / std::max(p.sq, p.sk);
  return fits ? std::string() : "TransformerEngine counts the tokens of a batch in 32 bits";
}

std::string version_obstacle(const Library& library) {
  for (const std::string_view function : {kAttentionBackend.name, kAttentionFwd.name, kAttentionBwd.name}) {
    if (!library.has(function)) {
      return fmt::format(
          "TransformerEngine {} has no {}: fused attention is called through parameter objects; install 2.20.2 or "
          "newer",
          library.version(), function);
    }
  }
  return {};
}

std::string obstacle_before_asking(const Context& context, const Call& call, const AttentionParams& p) {
  for (std::string obstacle : {interface_obstacle(context, *call.c->mode, p), case_obstacle(context, *call.c->mode, p),
                               empty_obstacle(call), size_obstacle(p), version_obstacle(context.library)}) {
    if (!obstacle.empty()) {
      return obstacle;
    }
  }
  return {};
}

/// The library's answer. It concerns the current device.
std::string refusal(const Context& context, const Call& call, const AttentionParams& p, AttentionPass pass) {
  if (context.device != nullptr) {
    context.device->use();
  }
  return fused_attention_refusal(context, p, *call.c->mode, pass);
}

std::string fwd_obstacle(const Context& context, const Call& call) {
  const auto p = op::from_params<AttentionParams>(call.c->params);
  if (std::string obstacle = obstacle_before_asking(context, call, p); !obstacle.empty()) {
    return obstacle;
  }
  // Wide heads may have a forward pass only. Inference drops nothing.
  std::string training = refusal(context, call, p, AttentionPass::training_forward);
  const bool runs =
      training.empty() || (!p.has_dropout() && refusal(context, call, p, AttentionPass::inference_forward).empty());
  return runs ? std::string() : training;
}

std::string bwd_obstacle(const Context& context, const Call& call) {
  const auto p = op::from_params<AttentionParams>(call.c->params);
  std::string obstacle = obstacle_before_asking(context, call, p);
  return obstacle.empty() ? refusal(context, call, p, AttentionPass::backward) : obstacle;
}

Fill fill_of(const AttentionParams& p) {
  return [p](const Operands& operands) { AttentionMemory(p).fill(operands, p); };
}

Algorithm fwd_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<AttentionParams>(call.c->params);
  const bool training = refusal(context, call, p, AttentionPass::training_forward).empty();
  Algorithm algorithm = two_calls(
      context, call, kAttentionFwd.name, [p, training](Operands& o) { return forward_attention(o, p, training); },
      AttentionMemory(p).bytes, fill_of(p));
  algorithm.details.emplace_back("is_training", training ? "true" : "false");
  return algorithm;
}

Algorithm bwd_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<AttentionParams>(call.c->params);
  Algorithm algorithm = two_calls(
      context, call, kAttentionBwd.name, [p](Operands& o) { return backward_attention(o, p); },
      AttentionMemory(p).bytes, fill_of(p));
  algorithm.details.emplace_back("deterministic", "true");
  // Of cuDNN 9.14, on an H200.
  algorithm.rounding.attention = {.head_gradients = p.key_heads() < p.heads && !op::has_scales(*call.c->mode),
                                  .scaled_bias = p.has_bias_tensor(),
                                  .bias_sum = p.has_bias_tensor() && p.batches > 1};
  return algorithm;
}

}  // namespace

// nvte_fused_attn_fwd_v2 and nvte_fused_attn_bwd_v2, which run cuDNN's fused kernels. Both multiply FP16, BF16 or FP8; the
// library says itself which shapes, masks, biases and layouts its cuDNN takes on this device. The forward pass is that
// of training where there is one (inference differs only in which cases it takes): its saved statistics are the
// log-sum-exps. The backward pass is the deterministic one.
// Source: TransformerEngine common/fused_attn; cuDNN frontend, scaled_dot_product_flash_attention.h, for ALiBi.
const Binding& attention_fwd() {
  static const TeBinding binding{{"transformer_engine", "attention_fwd"}, &fwd_obstacle, &fwd_algorithm};
  return binding;
}

const Binding& attention_dropout() {
  static const TeBinding binding{
      {"transformer_engine", "attention_dropout"}, &fwd_obstacle, [](const Context& context, const Call& call) {
        return harness::probed_mask(context.device->memory(), call,
                                    [&context](const Call& forward) { return fwd_algorithm(context, forward); });
      }};
  return binding;
}

const Binding& attention_bwd() {
  static const TeBinding binding{{"transformer_engine", "attention_bwd"}, &bwd_obstacle, &bwd_algorithm};
  return binding;
}

}  // namespace numcheck::kernels::transformer_engine
