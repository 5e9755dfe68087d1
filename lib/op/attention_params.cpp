#include "op/attention_params.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "op/attention_layout.hpp"

namespace numcheck::op {

double AttentionParams::factor() const noexcept {
  return static_cast<double>(static_cast<float>(scale == 0 ? 1 / std::sqrt(static_cast<double>(d)) : scale));
}

double AttentionParams::keep_scale() const noexcept {
  return static_cast<double>(static_cast<float>(1 / (1 - dropout)));
}

bool AttentionParams::keeps_exactly() const noexcept {
  constexpr double kHalf = 0.5;
  int exponent = 0;
  return std::frexp(keep_scale(), &exponent) == kHalf;
}

std::int64_t AttentionParams::diagonal(std::int64_t queries, std::int64_t keys) const noexcept {
  return mask == "causal" || mask == "padding_causal" ? 0 : keys - queries;
}

KeyRange AttentionParams::visible(std::int64_t i, std::int64_t queries, std::int64_t keys) const noexcept {
  const std::int64_t own = i + diagonal(queries, keys);
  KeyRange range{0, keys};
  if (window_left >= 0) {
    range.begin = std::max(range.begin, own - window_left);
  }
  if (window_right >= 0) {
    range.end = std::min(range.end, own + window_right + 1);
  }
  if (is_causal()) {
    range.end = std::min(range.end, own + 1);
  }
  range.end = std::max(range.end, range.begin);
  return range;
}

double alibi_slope(std::int64_t head, std::int64_t heads) noexcept {
  const auto n = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  const auto power = static_cast<double>(n);
  const double exponent =
      head < n ? 8 * static_cast<double>(head + 1) / power : 4 * static_cast<double>(2 * (head - n) + 1) / power;
  return static_cast<double>(static_cast<float>(std::exp2(-exponent)));
}

std::span<const std::string_view> attention_modes() noexcept {
  static constexpr std::array<std::string_view, 6> kModes = {"fp32", "tf32", "bf16", "fp16", "fp8_e4m3", "fp8_hybrid"};
  return kModes;
}

Port attention_bias_port(std::string_view name, Role role, const AttentionParams& p, const Mode& mode,
                         std::string_view doc) {
  Port bias = dense_port(name, role, mode.first, p.sq, p.sk, doc);
  bias.batch = p.heads;
  bias.batch_stride = p.sq * p.sk;
  return bias;
}

std::vector<Port> attention_lengths(const AttentionParams& p) {
  if (!p.has_lengths()) {
    return {};
  }
  const auto lengths = [&p](std::string_view name, std::string_view doc) {
    Port port = dense_port(name, Role::input, core::Dtype::int32, p.batches, 1, doc);
    port.fill = Fill::computed;
    return port;
  };
  return {lengths("q_lengths", "queries of each sequence"), lengths("kv_lengths", "keys of each sequence")};
}

Port dropout_mask_port(const AttentionParams& p, const Mode& mode, Role role) {
  Port mask = dense_port("dropout_mask", role, mode.first, p.sq, p.sk, "1 = kept, 0 = dropped, of each weight");
  mask.batch = p.batches * p.heads;
  mask.batch_stride = p.sq * p.sk;
  mask.fill = role == Role::input ? Fill::derived : Fill::generated;
  return mask;
}

std::vector<Port> attention_inputs(const AttentionParams& p, const Mode& mode) {
  std::vector<Port> list = {
      attention_port("q", Role::input, mode.first, p, Side::queries, p.d, "queries"),
      attention_port("k", Role::input, mode.first, p, Side::keys, p.d, "keys"),
      attention_port("v", Role::input, mode.first, p, Side::keys, p.value_channels(), "values"),
  };
  if (p.has_bias_tensor()) {
    list.push_back(attention_bias_port("bias", Role::input, p, mode, "added to the scores of every sequence"));
  }
  if (p.softmax == "learnable") {
    list.push_back(dense_port("softmax_offset", Role::input, core::Dtype::fp32, p.heads, 1,
                              "logarithm of what the denominator has besides the keys"));
  }
  std::ranges::move(attention_lengths(p), std::back_inserter(list));
  if (p.has_dropout()) {
    list.push_back(dropout_mask_port(p, mode, p.draws_mask() ? Role::output : Role::input));
    list.back().passed_on = p.draws_mask();
  }
  return list;
}

std::vector<std::string> check_attention(std::string_view op, const AttentionParams& p) {
  std::vector<std::string> mistakes;
  if (p.heads % p.key_heads() != 0) {
    mistakes.push_back(fmt::format("{}: {} heads cannot share {} heads of keys; kv_heads must divide heads", op,
                                   p.heads, p.key_heads()));
  }
  std::ranges::move(check_attention_layout(op, p), std::back_inserter(mistakes));
  for (const auto& [name, value] : {std::pair{"scale", p.scale}, std::pair{"softcap", p.softcap}}) {
    if (value != 0 && static_cast<float>(value) == 0) {
      mistakes.push_back(fmt::format("{}: {} {} underflows to 0 in FP32; leave it out for {}", op, name, value,
                                     std::string_view(name) == "scale" ? "1 / sqrt(d)" : "no limit"));
    }
  }
  constexpr double kMaxElements = 0x1p40;
  const auto heads = static_cast<double>(p.batches * p.heads);
  const auto longest = static_cast<double>(std::max(p.sq, p.sk));
  const auto widest = static_cast<double>(std::max(p.d, p.value_channels()));
  if (heads * longest * widest > kMaxElements) {
    mistakes.push_back(fmt::format("{}: a tensor has more than 2^40 elements", op));
  }
  if (p.has_bias_tensor() && heads * static_cast<double>(p.sq) * static_cast<double>(p.sk) > kMaxElements) {
    mistakes.push_back(fmt::format("{}: the bias has more than 2^40 elements", op));
  }
  if (p.dropout_mask != "drawn" && p.rng_seed != AttentionParams().rng_seed) {
    mistakes.push_back(fmt::format("{}: rng_seed is the seed of a mask that is drawn; set dropout_mask to drawn", op));
  }
  if (p.dropout_mask == "drawn" && !p.has_dropout()) {
    mistakes.push_back(fmt::format("{}: there is no dropout, so no mask is drawn; set dropout", op));
  }
  if (p.has_dropout() && heads * static_cast<double>(p.sq) * static_cast<double>(p.sk) > kMaxElements) {
    mistakes.push_back(fmt::format("{}: the dropout mask has more than 2^40 elements", op));
  }
  return mistakes;
}

namespace {

/// Sum over all t <= n of t, limited to 0 .. most.
std::int64_t sum_of_limited(std::int64_t n, std::int64_t most) {
  const std::int64_t rising = std::clamp<std::int64_t>(n, 0, most);
  return rising * (rising + 1) / 2 + std::max<std::int64_t>(n - most, 0) * most;
}

/// Elements of a matrix whose column minus row is at most `distance`: row i has i + distance + 1 of them, 0 to `columns`.
std::int64_t elements_within(std::int64_t distance, std::int64_t rows, std::int64_t columns) {
  return sum_of_limited(rows + distance, columns) - sum_of_limited(distance, columns);
}

}  // namespace

double visible_scores(const AttentionParams& p) {
  const std::int64_t own = p.diagonal(p.sq, p.sk);
  const std::int64_t first = p.window_left >= 0 ? own - p.window_left : -p.sq;
  const std::int64_t last = std::min(p.window_right >= 0 ? own + p.window_right : p.sk, p.is_causal() ? own : p.sk);
  const std::int64_t scores =
      last < first ? 0 : elements_within(last, p.sq, p.sk) - elements_within(first - 1, p.sq, p.sk);
  return static_cast<double>(p.batches * p.heads) * static_cast<double>(scores);
}

}  // namespace numcheck::op
