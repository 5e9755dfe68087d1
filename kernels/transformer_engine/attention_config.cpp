#include "kernels/transformer_engine/attention_config.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "kernels/transformer_engine/attention_interface.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

constexpr ObjectFunctions kConfig = {kCreateAttentionConfig, kDestroyAttentionConfig, kSetAttentionConfig};

constexpr SharedAttributes kConfigAttributes = {
    .mask = kConfigMask,
    .bias = kConfigBias,
    .window_left = kConfigWindowLeft,
    .window_right = kConfigWindowRight,
    .bottom_right = kConfigBottomRight,
    .softmax = kConfigSoftmax,
    .dropout = kConfigDropout,
    .scale = kConfigScale,
    .qkv_layout = kConfigQkvLayout,
    .o_format = kConfigOFormat,
    .longest_q = kConfigMaxQ,
    .longest_kv = kConfigMaxKv,
};

using Numbers = std::pair<std::string_view, int>;

constexpr std::array<Numbers, 6> kMasks = {{
    {"none", kNoMask},
    {"causal", kCausalMask},
    {"causal_bottom_right", kCausalBottomRightMask},
    {"padding", kPaddingMask},
    {"padding_causal", kPaddingCausalMask},
    {"padding_causal_bottom_right", kPaddingCausalBottomRightMask},
}};
constexpr std::array<Numbers, 3> kBiases = {{
    {"none", kNoBias},
    {"post_scale", kPostScaleBias},
    {"alibi", kAlibiBias},
}};
constexpr std::array<Numbers, 3> kSoftmaxes = {{
    {"vanilla", kVanillaSoftmax},
    {"off_by_one", kOffByOneSoftmax},
    {"learnable", kLearnableSoftmax},
}};
constexpr std::array<Numbers, 3> kLayouts = {{
    {"bshd", kBshdBshdBshd},
    {"sbhd", kSbhdSbhdSbhd},
    {"bhsd", kBhsdBhsdBhsd},
}};
constexpr std::array<Numbers, 3> kFormats = {{{"bshd", kBshd}, {"sbhd", kSbhd}, {"bhsd", kBhsd}}};

template <std::size_t count>
int number_of(const std::array<Numbers, count>& table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Numbers::first);
  if (found == table.end()) {
    throw core::InternalError(fmt::format("TransformerEngine's attention has no {}", name));
  }
  return found->second;
}

bool has_window(const op::AttentionParams& p) {
  return p.window_left >= 0 || (p.window_right >= 0 && !p.is_causal());
}

bool is_bottom_right(const op::AttentionParams& p) {
  return p.mask.ends_with("bottom_right");
}

/// A condition of TransformerEngine's table for FP16 and BF16 that needs neither cuDNN nor its version.
/// Source: TransformerEngine common/fused_attn/fused_attn.cpp, nvte_get_fused_attn_backend.
struct Gate {
  std::string_view rule;
  bool (*fails)(const op::AttentionParams&, int sm, AttentionPass);
};

constexpr std::array<Gate, 9> kGates = {{
    {"the device must be sm_80 or newer", [](const op::AttentionParams&, int sm, AttentionPass) { return sm < 80; }},
    {"d and dv must be multiples of 8",
     [](const op::AttentionParams& p, int, AttentionPass) { return p.d % 8 != 0 || p.value_channels() % 8 != 0; }},
    {"in training, d and dv may be up to 128, on sm_90 up to 256, and on sm_100 also 192 with 128, or 256",
     [](const op::AttentionParams& p, int sm, AttentionPass pass) {
       const std::int64_t v = p.value_channels(), widest = std::max(p.d, v);
       const bool large = sm >= 100 && ((p.d == 192 && v == 128) || (p.d == 256 && v == 256));
       return pass != AttentionPass::inference_forward && widest > (sm == 90 ? 256 : 128) && !large;
     }},
    {"in training on sm_90, d and dv of 128 or more must be equal, or 192 and 128",
     [](const op::AttentionParams& p, int sm, AttentionPass pass) {
       const std::int64_t v = p.value_channels();
       return pass != AttentionPass::inference_forward && sm == 90 && p.d != v && p.d >= 128 && v >= 128 &&
              !(p.d == 192 && v == 128);
     }},
    {"a bias tensor does not go with padding masks",
     [](const op::AttentionParams& p, int, AttentionPass) { return p.bias == "post_scale" && p.has_lengths(); }},
    {"ALiBi needs sm_90 or newer and a causal mask without padding",
     [](const op::AttentionParams& p, int sm, AttentionPass) {
       return p.bias == "alibi" && (sm < 90 || !p.is_causal() || p.has_lengths());
     }},
    {"a causal mask from the bottom right needs sq <= sk and does not go with a bias",
     [](const op::AttentionParams& p, int, AttentionPass) {
       return is_bottom_right(p) && (p.sq > p.sk || (p.bias != "none" && p.sq != p.sk));
     }},
    {"a window needs sq <= sk and does not go with a bias",
     [](const op::AttentionParams& p, int, AttentionPass) {
       return has_window(p) && (p.sq > p.sk || p.bias != "none");
     }},
    {"from sm_100 on, the deterministic backward pass does not go with a bias, and sm_120 does not have it",
     [](const op::AttentionParams& p, int sm, AttentionPass pass) {
       return pass == AttentionPass::backward && (sm == 120 || (sm >= 100 && p.bias != "none"));
     }},
}};

std::string failed_gate(const op::AttentionParams& p, int sm, AttentionPass pass) {
  const auto found = std::ranges::find_if(kGates, [&](const Gate& gate) { return gate.fails(p, sm, pass); });
  return found == kGates.end() ? std::string() : fmt::format("; the condition is: {}", found->rule);
}

void describe(AttributeObject& config, const op::AttentionParams& p, const op::Mode& mode, AttentionPass pass) {
  const AttentionTerms terms(p);
  terms.apply(config, kConfigAttributes);
  config.set(kConfigIsTraining, pass != AttentionPass::inference_forward);
  config.set(kConfigDeterministic, pass == AttentionPass::backward);
  config.set<int>(kConfigScalingMode, kPerTensor);
  for (const int type : {kConfigQkvType, kConfigOType, kConfigDoType, kConfigDqkvType}) {
    config.set(type, data_type(mode.first));
  }
  config.set(kConfigDoFormat, terms.format);
  config.set(kConfigDqkvLayout, terms.layout);
  const auto count = [&config](int attribute, std::int64_t value) {
    config.set(attribute, static_cast<std::size_t>(value));
  };
  count(kConfigBatches, p.batches);
  count(kConfigHeads, p.heads);
  count(kConfigKvHeads, p.key_heads());
  count(kConfigHeadDimQk, p.d);
  count(kConfigHeadDimV, p.value_channels());
  if (p.has_bias_tensor()) {
    count(kConfigBiasBatches, 1);
    count(kConfigBiasHeads, p.heads);
    count(kConfigBiasQ, p.sq);
    count(kConfigBiasKv, p.sk);
  }
}

}  // namespace

AttentionTerms::AttentionTerms(const op::AttentionParams& p)
    : mask(number_of(kMasks, p.mask)),
      bias(number_of(kBiases, p.bias)),
      softmax(number_of(kSoftmaxes, p.softmax)),
      layout(number_of(kLayouts, p.layout)),
      format(number_of(kFormats, p.layout)),
      window_left(p.window_left),
      window_right(p.is_causal() ? 0 : p.window_right),
      bottom_right(is_bottom_right(p) || (!p.is_causal() && has_window(p))),
      scale(static_cast<float>(p.factor())),
      longest_q(static_cast<std::size_t>(p.sq)),
      longest_kv(static_cast<std::size_t>(p.sk)) {}

void AttentionTerms::apply(AttributeObject& object, const SharedAttributes& attributes) const {
  object.set(attributes.mask, mask);
  object.set(attributes.bias, bias);
  object.set(attributes.window_left, window_left);
  object.set(attributes.window_right, window_right);
  object.set(attributes.bottom_right, bottom_right);
  object.set(attributes.softmax, softmax);
  object.set(attributes.dropout, 0.0F);
  object.set(attributes.scale, scale);
  object.set(attributes.qkv_layout, layout);
  object.set(attributes.o_format, format);
  object.set(attributes.longest_q, longest_q);
  object.set(attributes.longest_kv, longest_kv);
}

std::string fused_attention_refusal(const Context& context, const op::AttentionParams& p, const op::Mode& mode,
                                    AttentionPass pass) {
  AttributeObject config(context.library, kConfig);
  describe(config, p, mode, pass);
  const char* message = nullptr;
  if (context.library.call(kAttentionBackend, config.handle(), &message) == kF16Attention) {
    return {};
  }
  std::string words = message == nullptr ? "" : message;
  while (!words.empty() && (words.back() == '.' || words.back() == ' ' || words.back() == '\n')) {
    words.pop_back();
  }
  return fmt::format("TransformerEngine's nvte_get_fused_attn_backend has no fused kernel for this case{}{}",
                     words.empty() ? std::string() : fmt::format(" (\"{}\")", words),
                     failed_gate(p, context.info.sm, pass));
}

}  // namespace numcheck::kernels::transformer_engine
