#include "op/attention_params.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

namespace numcheck::op {

double AttentionParams::factor() const noexcept {
  return static_cast<double>(static_cast<float>(scale == 0 ? 1 / std::sqrt(static_cast<double>(d)) : scale));
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

HeadPlace head_place(const AttentionParams& p, std::int64_t batch, std::int64_t head, std::int64_t heads,
                     std::int64_t length, std::int64_t channels) noexcept {
  if (p.layout == "bhsd") {
    return {(batch * heads + head) * length * channels, channels};
  }
  if (p.layout == "sbhd") {
    return {(batch * heads + head) * channels, p.batches * heads * channels};
  }
  return {batch * length * heads * channels + head * channels, heads * channels};
}

Port attention_port(std::string_view name, Role role, core::Dtype dtype, const AttentionParams& p, std::int64_t length,
                    std::int64_t heads, std::int64_t channels, std::string_view doc) {
  const bool head_first = p.layout == "bhsd";
  const bool sequence_first = p.layout == "sbhd";
  const std::int64_t cols = head_first ? channels : sequence_first ? p.batches * heads * channels : heads * channels;
  Port port = dense_port(name, role, dtype, length, cols, doc);
  port.batch = head_first ? p.batches * heads : sequence_first ? 1 : p.batches;
  return port;
}

std::vector<std::string> check_attention(std::string_view op, const AttentionParams& p) {
  std::vector<std::string> mistakes;
  if (p.heads % p.key_heads() != 0) {
    mistakes.push_back(fmt::format("{}: {} heads cannot share {} heads of keys; kv_heads must divide heads", op,
                                   p.heads, p.key_heads()));
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
  return mistakes;
}

double visible_scores(const AttentionParams& p) {
  double scores = 0;
  for (std::int64_t i = 0; i < p.sq; ++i) {
    scores += static_cast<double>(p.visible(i, p.sq, p.sk).size());
  }
  return static_cast<double>(p.batches * p.heads) * scores;
}

}  // namespace numcheck::op
