#include "kernels/transformer_engine/attention_config.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "eligibility/attention_gates.hpp"
#include "kernels/transformer_engine/attention_interface.hpp"
#include "op/attention_fp8.hpp"
#include "op/attention_layout.hpp"

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
    {"bshd", kBshdLayouts},
    {"sbhd", kSbhdLayouts},
    {"thd", kThdLayouts},
}};
constexpr std::array<Numbers, 5> kPackings = {{
    {"none", kNotPacked},
    {"qkv_3hd", kQkv3hd},
    {"qkv_h3d", kQkvH3d},
    {"kv_2hd", kKv2hd},
    {"kv_h2d", kKvH2d},
}};
constexpr std::array<Numbers, 4> kFormats = {{{"bshd", kBshd}, {"sbhd", kSbhd}, {"bhsd", kBhsd}, {"thd", kThd}}};

template <std::size_t count>
int number_of(const std::array<Numbers, count>& table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Numbers::first);
  if (found == table.end()) {
    throw core::InternalError(fmt::format("TransformerEngine's attention has no {}", name));
  }
  return found->second;
}

int layout_of(const op::AttentionParams& p) {
  return p.layout == "bhsd" ? kBhsdBhsdBhsd : number_of(kLayouts, p.layout) + number_of(kPackings, p.packing);
}

bool has_window(const op::AttentionParams& p) {
  return p.window_left >= 0 || (p.window_right >= 0 && !p.is_causal());
}

bool is_bottom_right(const op::AttentionParams& p) {
  return p.is_causal() && p.diagonal(0, 1) != 0;
}

/// The gate of TransformerEngine's table that fails, as the end of a sentence. The version of its cuDNN is not known
/// here, so gates that depend on it do not speak.
std::string failed_gate(const op::AttentionParams& p, const op::Mode& mode, int sm, AttentionPass pass) {
  const std::string rule =
      eligibility::first_refusal(eligibility::Selector::fused_kernels, p, circumstances_of(mode, sm, pass));
  return rule.empty() ? rule : fmt::format("; the condition is: {}", rule);
}

void describe(AttributeObject& config, const op::AttentionParams& p, const op::Mode& mode, AttentionPass pass) {
  const AttentionTerms terms(p);
  terms.apply(config, kConfigAttributes);
  config.set(kConfigIsTraining, pass != AttentionPass::inference_forward);
  config.set(kConfigDeterministic, pass == AttentionPass::backward);
  config.set(kConfigReturnMaxLogit, p.max_logit);
  config.set<int>(kConfigScalingMode, kPerTensor);
  config.set(kConfigQkvType, data_type(mode.first));
  config.set(kConfigOType, data_type(op::attention_output(mode)));
  config.set(kConfigDoType, data_type(op::attention_gradient(mode)));
  config.set(kConfigDqkvType, data_type(op::attention_gradient(mode)));
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
  if (p.is_ragged()) {
    count(kConfigTokensQ, op::tokens(p, op::Side::queries));
    count(kConfigTokensKv, op::tokens(p, op::Side::keys));
  }
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
      layout(layout_of(p)),
      format(number_of(kFormats, p.layout)),
      window_left(p.window_left),
      window_right(p.is_causal() ? 0 : p.window_right),
      bottom_right(is_bottom_right(p) || (!p.is_causal() && has_window(p))),
      dropout(static_cast<float>(p.dropout)),
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
  object.set(attributes.dropout, dropout);
  object.set(attributes.scale, scale);
  object.set(attributes.qkv_layout, layout);
  object.set(attributes.o_format, format);
  object.set(attributes.longest_q, longest_q);
  object.set(attributes.longest_kv, longest_kv);
}

eligibility::Circumstances circumstances_of(const op::Mode& mode, int sm, AttentionPass pass) {
  return {.storage = mode.first,
          .training = pass != AttentionPass::inference_forward,
          .backward = pass == AttentionPass::backward,
          .deterministic = pass == AttentionPass::backward,
          .sm = sm,
          .cudnn = std::nullopt};
}

std::string fused_attention_refusal(const Context& context, const op::AttentionParams& p, const op::Mode& mode,
                                    AttentionPass pass) {
  AttributeObject config(context.library, kConfig);
  describe(config, p, mode, pass);
  const char* message = nullptr;
  const int wanted = op::has_scales(mode) ? kFp8Attention : kF16Attention;
  if (context.library.call(kAttentionBackend, config.handle(), &message) == wanted) {
    return {};
  }
  std::string words = message == nullptr ? "" : message;
  while (!words.empty() && (words.back() == '.' || words.back() == ' ' || words.back() == '\n')) {
    words.pop_back();
  }
  return fmt::format("TransformerEngine's nvte_get_fused_attn_backend has no fused kernel for this case{}{}",
                     words.empty() ? std::string() : fmt::format(" (\"{}\")", words),
                     failed_gate(p, mode, context.info.sm, pass));
}

}  // namespace numcheck::kernels::transformer_engine
