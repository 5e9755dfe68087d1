#include "kernels/unfused/attention_setup.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "kernels/contract/ports.hpp"

namespace numcheck::kernels::unfused {
namespace {

constexpr std::size_t kAlignment = 256;

template <class T>
const T* input_of(std::span<const PortMemory> ports, std::string_view name) {
  return reinterpret_cast<const T*>(first_element(find_port(ports, name)));
}

}  // namespace

void require_known(const op::AttentionParams& p, const op::Mode& mode) {
  if (p.is_ragged()) {
    throw NotSupported(
        "unfused attention multiplies matrices of one size; TransformerEngine copies thd tensors to bshd and back, "
        "which "
        "changes no number: set layout to bshd");
  }
  const core::Dtype stored = mode.first;
  if (stored != core::Dtype::fp32 && stored != core::Dtype::bf16 && stored != core::Dtype::fp16) {
    throw NotSupported(fmt::format("unfused attention takes FP32, BF16 and FP16, not {}", mode.name));
  }
}

Format format_of(core::Dtype dtype) {
  return dtype == core::Dtype::bf16 ? Format::bf16 : dtype == core::Dtype::fp16 ? Format::fp16 : Format::fp32;
}

AttentionRules rules_of(const op::AttentionParams& p, const op::Mode& mode) {
  AttentionRules rules;
  rules.format = format_of(mode.first);
  rules.batches = p.batches;
  rules.heads = p.heads;
  rules.sq = p.sq;
  rules.sk = p.sk;
  rules.causal = p.is_causal();
  rules.top_left = p.diagonal(0, 1) == 0;
  rules.window_left = p.window_left;
  rules.window_right = p.window_right;
  rules.bias = p.bias == "pre_scale"    ? Bias::pre_scale
               : p.bias == "post_scale" ? Bias::post_scale
               : p.bias == "alibi"      ? Bias::alibi
                                        : Bias::none;
  rules.scale = static_cast<float>(p.factor());
  rules.softcap = static_cast<float>(p.softcap);
  rules.keep_scale = static_cast<float>(p.keep_scale());
  rules.sink = p.softmax == "learnable" ? Sink::learnable : p.softmax == "off_by_one" ? Sink::one : Sink::none;
  return rules;
}

AttentionRules with_inputs(AttentionRules rules, std::span<const PortMemory> ports) {
  rules.q_lengths = input_of<std::int32_t>(ports, "q_lengths");
  rules.kv_lengths = input_of<std::int32_t>(ports, "kv_lengths");
  rules.bias_tensor = input_of<std::byte>(ports, "bias");
  rules.softmax_offset = input_of<float>(ports, "softmax_offset");
  rules.dropout_mask = input_of<std::byte>(ports, "dropout_mask");
  return rules;
}

HeadStrides strides_of(const op::AttentionParams& p, op::Side side, std::string_view port, std::int64_t channels) {
  const op::HeadStrides at = op::memory_strides(p, side, port, channels);
  return {at.batch, at.head, at.position};
}

AttentionStacks::AttentionStacks(const op::AttentionParams& p)
    : p_(p), group_(p.heads / p.key_heads()), width_(p.value_channels()) {}

Stack AttentionStacks::of_queries(std::string_view port, std::int64_t channels) const {
  const op::HeadStrides at = op::memory_strides(p_, op::Side::queries, port, channels);
  return {p_.sq, channels, at.position, {at.batch, group_ * at.head, at.head}, at.first};
}

Stack AttentionStacks::of_keys(std::string_view port, std::int64_t channels) const {
  const op::HeadStrides at = op::memory_strides(p_, op::Side::keys, port, channels);
  return {p_.sk, channels, at.position, {at.batch, at.head, 0}, at.first};
}

Stack AttentionStacks::dense(std::int64_t rows, std::int64_t cols) const {
  const std::int64_t one = rows * cols;
  return {rows, cols, cols, {p_.heads * one, group_ * one, one}};
}

ProductShape AttentionStacks::product(const Factor& a, const Factor& b, const Stack& d, double alpha) const {
  return {a, b, d, {p_.batches, p_.key_heads(), group_}, alpha};
}

std::size_t Regions::add(std::int64_t elements, std::int64_t element_bytes) {
  const std::size_t begin = bytes_;
  const auto needed = static_cast<std::size_t>(elements * element_bytes);
  bytes_ += (needed + kAlignment - 1) / kAlignment * kAlignment;
  return begin;
}

std::size_t add_workspace(Regions& regions, std::initializer_list<const BatchedProduct*> products) {
  std::size_t most = 0;
  for (const BatchedProduct* product : products) {
    most = std::max(most, product->workspace_bytes());
  }
  return regions.add(static_cast<std::int64_t>(most), 1);
}

std::vector<std::pair<std::string, std::string>> details_of(const op::AttentionParams& p, const op::Mode& mode,
                                                            std::initializer_list<const BatchedProduct*> products) {
  std::vector<std::pair<std::string, std::string>> details;
  for (const BatchedProduct* product : products) {
    details.emplace_back(product->name(), product->text());
  }
  const int roundings = score_roundings(p);
  details.emplace_back("intermediate", fmt::format("weights and gradients of scores are stored in {}, scores {}",
                                                   core::dtype_info(mode.first).name,
                                                   roundings == 1 ? "once" : fmt::format("{} times", roundings)));
  return details;
}

int score_roundings(const op::AttentionParams& p) noexcept {
  constexpr int kProduct = 1;
  const int bias = p.bias == "pre_scale" ? 2 : p.bias == "none" ? 0 : 1;  // the sum; with pre_scale the scaling, too
  const int cap = p.softcap > 0 ? 3 : 0;                                  // division, tanh, multiplication
  return kProduct + bias + cap;
}

int rounded_slices(std::initializer_list<const BatchedProduct*> products) noexcept {
  int most = 1;
  for (const BatchedProduct* product : products) {
    most = std::max(most, product->rounded_slices());
  }
  return most;
}

}  // namespace numcheck::kernels::unfused
