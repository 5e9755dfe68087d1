// Random shapes, masks, biases and layouts of attention.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>

#include "op/attention_params.hpp"

namespace numcheck::reference::testing {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::int64_t between(std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(engine_);
  }
  std::string one_of(std::initializer_list<const char*> names) {
    return names.begin()[between(0, static_cast<std::int64_t>(names.size()) - 1)];
  }

 private:
  std::mt19937 engine_;
};

/// Lengths of one case in four are drawn up to `queries` and `keys`, the others up to 9.
struct AttentionSizes {
  std::int64_t queries, keys, shared_heads, channels;
};

inline op::AttentionParams random_attention(Random& random, const AttentionSizes& sizes) {
  op::AttentionParams p;
  p.batches = random.between(1, 3);
  p.kv_heads = random.between(1, sizes.shared_heads);
  p.heads = p.kv_heads * random.between(1, sizes.shared_heads);
  const bool large = random.between(0, 3) == 0;
  p.sq = random.between(1, large ? sizes.queries : 9);
  p.sk = random.between(1, large ? sizes.keys : 9);
  p.d = random.between(1, sizes.channels);
  p.dv = random.between(0, sizes.channels);
  p.scale = random.between(0, 1) == 0 ? 0 : 0.3;
  p.mask = random.one_of(
      {"none", "causal", "causal_bottom_right", "padding", "padding_causal", "padding_causal_bottom_right"});
  p.window_left = random.between(-1, 5);
  p.window_right = random.between(-1, 5);
  p.bias = random.one_of({"none", "pre_scale", "post_scale", "alibi"});
  p.softmax = random.one_of({"vanilla", "off_by_one", "learnable"});
  p.softcap = random.between(0, 2) == 0 ? 2 : 0;
  p.layout =
      p.has_lengths() ? random.one_of({"bshd", "sbhd", "bhsd", "thd", "thd"}) : random.one_of({"bshd", "sbhd", "bhsd"});
  p.align = p.is_ragged() ? random.between(1, 4) : 1;
  p.dropout = random.between(0, 3) == 0 ? 0.25 : 0;
  return p;
}

}  // namespace numcheck::reference::testing
