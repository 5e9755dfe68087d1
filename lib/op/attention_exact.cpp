#include "op/attention_exact.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "op/attention_layout.hpp"

namespace numcheck::op {
namespace {

constexpr double kGap = 128;              // exp(-128) is 0 in FP32, whether subnormals are flushed or not
constexpr std::int64_t kMaxLength = 255;  // so that every format of 8 significant bits holds size x length
constexpr double kLargest = 65504;        // of FP16
constexpr std::int64_t kHeadStep = 7;     // by which heads and sequences number their keys differently
constexpr std::int64_t kSequenceStep = 3;

/// What the denominator has besides the keys, relative to a weight of 1.
std::int64_t sink_terms(const AttentionParams& p) {
  return p.softmax == "off_by_one" ? 1 : 0;
}

bool is_power_of_two(std::int64_t n) {
  return n > 0 && std::has_single_bit(static_cast<std::uint64_t>(n));
}

/// One query: `channels` holds draws.
void set_query(const AttentionParams& p, const KeyCode& code, std::int64_t batch, std::int64_t key_head,
               const KeyRange& seen, std::span<double> channels) {
  const auto draw = static_cast<std::int64_t>(std::fabs(channels[0]));
  const bool even = channels[1] > 0;
  std::ranges::fill(channels, 0.0);
  if (seen.size() == 0 || (even && is_power_of_two(seen.size() + sink_terms(p)))) {
    return;
  }
  const std::int64_t key = seen.begin + draw % seen.size();
  const double size = std::copysign(code.size, p.factor());
  for (std::int64_t c = 0; c < code.length(); ++c) {
    channels[static_cast<std::size_t>(c)] = size * code.sign(c, key, batch, key_head);
  }
  channels[static_cast<std::size_t>(code.length())] = -size * static_cast<double>(code.length());
}

/// Positions that count; all others are set to 0.
template <class Set>
void for_each_row(const AttentionParams& p, Side side, std::span<double> values, const Set& set) {
  const auto width = static_cast<std::size_t>(p.d);
  for (const OutputValues::Range& unused : unused_elements(p, side, p.d, sequence_lengths(p, side))) {
    std::ranges::fill(
        values.subspan(static_cast<std::size_t>(unused.begin), static_cast<std::size_t>(unused.end - unused.begin)),
        0.0);
  }
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    for (std::int64_t head = 0; head < heads_of(p, side); ++head) {
      const HeadPlace place = head_place(p, side, batch, head, p.d);
      for (std::int64_t i = 0; i < sequence_length(p, side, batch); ++i) {
        set(batch, head, i, values.subspan(static_cast<std::size_t>(place.first + i * place.stride), width));
      }
    }
  }
}

}  // namespace

KeyCode::KeyCode(const AttentionParams& p)
    : bits(std::max<std::int64_t>(1, std::bit_width(static_cast<std::uint64_t>(p.sk - 1)))),
      repeats(std::max<std::int64_t>(1, std::min(p.d - 1, kMaxLength) / bits)) {
  const double least = kGap / (2 * static_cast<double>(repeats) * std::fabs(p.factor()));
  size = std::exp2(std::ceil(std::log2(least)));
}

double KeyCode::sign(std::int64_t c, std::int64_t key, std::int64_t batch, std::int64_t head) const noexcept {
  const std::int64_t number = key + kHeadStep * head + kSequenceStep * batch;
  return (number >> (c % bits)) % 2 == 0 ? 1.0 : -1.0;
}

std::string attention_exact_obstacle(const AttentionParams& p) {
  const KeyCode code(p);
  if (p.bias != "none" || p.softmax == "learnable") {
    return "a bias or a learnable offset makes the largest score differ from 0, and exponentials inexact";
  }
  if (!p.keeps_exactly()) {
    return "kept weights are divided by 1 - dropout, which is not a power of two";
  }
  if (p.softcap != 0) {
    return "capped scores are too close together for any weight to be 0";
  }
  if (code.length() >= p.d) {
    return "d is too small to tell the keys apart by signs: it needs one channel more than the bits of sk";
  }
  if (code.size * static_cast<double>(code.length()) > kLargest || code.size < 1) {
    return "with this scale the queries would not be FP16 integers";
  }
  return "";
}

void attention_exact_inputs(const AttentionParams& p, const Port& port, std::span<double> values) {
  const KeyCode code(p);
  if (port.name == "q") {
    for_each_row(p, Side::queries, values,
                 [&](std::int64_t batch, std::int64_t head, std::int64_t i, std::span<double> channels) {
                   set_query(
                       p, code, batch, head / (p.heads / p.key_heads()),
                       p.visible(i, sequence_length(p, Side::queries, batch), sequence_length(p, Side::keys, batch)),
                       channels);
                 });
  } else if (port.name == "k") {
    for_each_row(p, Side::keys, values,
                 [&](std::int64_t batch, std::int64_t head, std::int64_t j, std::span<double> channels) {
                   for (std::int64_t c = 0; c < code.length(); ++c) {
                     channels[static_cast<std::size_t>(c)] = code.sign(c, j, batch, head);
                   }
                   channels[static_cast<std::size_t>(code.length())] = 1;
                 });
  }
}

}  // namespace numcheck::op
