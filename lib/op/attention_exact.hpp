// The exact leg of attention: queries for which every correct kernel gives the same bits.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "op/attention_params.hpp"

namespace numcheck::op {

/// Some queries see keys that all score 0: o is the mean of the values that they see, where their number (plus that of
/// the sink) is a power of two. The others single out one key, which scores 0 while every other key scores at most -128,
/// so that its weight is 0 in FP32: o is one row of v (half of it if the sink counts 1). With dropout, values are those that
/// are kept, divided by 1 - dropout, which must be a power of two.
///
/// A key's number is written in its first `bits` x `repeats` channels as signs, one bit after another, `repeats` times;
/// the next channel is 1. A query holds `size` times the signs of its key and there -size bits repeats: the score is
/// scale size (sum of products of signs - bits repeats).
struct KeyCode {
  std::int64_t bits = 1;
  std::int64_t repeats = 1;
  double size = 1;

  explicit KeyCode(const AttentionParams& p);
  /// Channels with signs.
  [[nodiscard]] std::int64_t length() const noexcept { return bits * repeats; }
  /// 1 or -1: channel c < length() of key j of one head. Heads and sequences number their keys differently.
  [[nodiscard]] double sign(std::int64_t c, std::int64_t key, std::int64_t batch, std::int64_t head) const noexcept;
};

/// Why attention with these parameters has no exact leg, as a sentence; empty if it has one.
[[nodiscard]] std::string attention_exact_obstacle(const AttentionParams& p);

/// Turns integers, drawn at random, into the values of input `port`. q chooses its keys by them; others keep them.
void attention_exact_inputs(const AttentionParams& p, const Port& port, std::span<double> values);

}  // namespace numcheck::op
