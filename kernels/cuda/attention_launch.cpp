#include "kernels/cuda/attention_launch.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "kernels/cuda/port_access.hpp"

namespace numcheck::kernels::cuda {
namespace {

constexpr std::array<std::string_view, 3> kModes = {"fp32", "bf16", "fp16"};

template <class T>
void append(std::vector<std::byte>& image, T value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  image.insert(image.end(), bytes.begin(), bytes.end());
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
        "te-numcheck's own attention kernels compute in FP32 only, for the modes fp32, bf16 and fp16, not {}{}",
        call.c->mode->name, call.c->mode->scaled ? ": set backend to cudnn or transformer_engine" : "");
  }
  return {};
}

AttentionTables::AttentionTables(const op::AttentionParams& p) {
  for (std::int64_t head = 0; p.bias == "alibi" && head < p.heads; ++head) {
    append(image_, static_cast<float>(op::alibi_slope(head, p.heads)));
  }
  starts_at_ = image_.size();
  batches_ = p.is_ragged() ? static_cast<std::size_t>(p.batches) : 0;
  for (const op::Side side : {op::Side::queries, op::Side::keys}) {
    for (std::size_t batch = 0; batch < batches_; ++batch) {
      append(image_, static_cast<int>(op::first_token(p, side, static_cast<std::int64_t>(batch))));
    }
  }
}

void AttentionTables::upload(cuda_support::CudaDevice& device, std::byte* to) const {
  if (!image_.empty()) {
    device.memory().upload(to, image_);
  }
}

const float* AttentionTables::slopes(const std::byte* uploaded) const noexcept {
  return starts_at_ == 0 ? nullptr : reinterpret_cast<const float*>(uploaded);
}

const int* AttentionTables::starts(const std::byte* uploaded, op::Side side) const noexcept {
  const auto* const all = reinterpret_cast<const int*>(uploaded + starts_at_);
  return batches_ == 0 ? nullptr : side == op::Side::queries ? all : all + batches_;
}

AttentionRules AttentionPorts::rules() const {
  AttentionRules rules;
  rules.batches = static_cast<int>(p_.batches);
  rules.heads = static_cast<int>(p_.heads);
  rules.kv_heads = static_cast<int>(p_.key_heads());
  rules.sq = static_cast<int>(p_.sq);
  rules.sk = static_cast<int>(p_.sk);
  rules.scale = static_cast<float>(p_.factor());
  rules.softcap = static_cast<float>(p_.softcap);
  rules.causal = p_.is_causal();
  rules.top_left = p_.diagonal(p_.sq, p_.sk + 1) == p_.diagonal(p_.sq, p_.sk);  // does not depend on the lengths
  rules.window_left = static_cast<int>(p_.window_left);
  rules.window_right = static_cast<int>(p_.window_right);
  rules.bias_kind = bias_of(p_);
  rules.bias = tensor_of(ports_, "bias");
  rules.slopes = tables_.slopes(uploaded_);
  rules.sink = p_.softmax == "learnable" ? Sink::learnable : p_.softmax == "off_by_one" ? Sink::one : Sink::none;
  rules.offsets = static_cast<const float*>(address_of(ports_, "softmax_offset"));
  rules.q_lengths = static_cast<const int*>(address_of(ports_, "q_lengths"));
  rules.kv_lengths = static_cast<const int*>(address_of(ports_, "kv_lengths"));
  rules.dropout_mask = tensor_of(ports_, "dropout_mask");
  rules.keep_scale = static_cast<float>(p_.keep_scale());
  rules.q_starts = tables_.starts(uploaded_, op::Side::queries);
  rules.kv_starts = tables_.starts(uploaded_, op::Side::keys);
  return rules;
}

HeadTensor AttentionPorts::heads(std::string_view port, op::Side side, std::int64_t channels) const {
  const op::HeadStrides strides = op::memory_strides(p_, side, port, channels);
  HeadTensor heads;
  heads.tensor = tensor_of(ports_, port);
  heads.starts = tables_.starts(uploaded_, side);
  heads.batch_stride = strides.batch;
  heads.head_stride = strides.head;
  heads.stride = strides.position;
  heads.positions = static_cast<int>(op::longest(p_, side));
  heads.channels = static_cast<int>(channels);
  return heads;
}

}  // namespace numcheck::kernels::cuda
