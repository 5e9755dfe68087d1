// Random cases of attention near the gates of configs/attention_gates.json.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "op/attention_params.hpp"

namespace numcheck::test {

template <class T>
const T& one_of(std::mt19937_64& generator, const std::vector<T>& list) {
  return list[generator() % list.size()];
}

/// Most of a case's parameters are plain, so that one gate rarely hides another.
inline op::AttentionParams case_near_gates(std::mt19937_64& generator) {
  const auto rarely = [&generator] { return generator() % 4 == 0; };
  const std::vector<std::int64_t> lengths = {1, 63, 64, 127, 128, 129, 200, 256, 1024, 2048};
  const std::vector<std::int64_t> channels = {8, 20, 36, 64, 96, 128, 136, 160, 192, 256, 264, 512};
  op::AttentionParams p;
  p.batches = 2;
  p.heads = 8;
  p.kv_heads = rarely() ? one_of<std::int64_t>(generator, {1, 2}) : 0;
  p.sq = one_of(generator, lengths);
  p.sk = rarely() ? one_of(generator, lengths) : p.sq;
  p.d = rarely() ? one_of(generator, channels) : 64;
  p.dv = rarely() ? one_of(generator, channels) : 0;
  p.mask = one_of<std::string>(
      generator, {"none", "causal", "causal_bottom_right", "padding", "padding_causal", "padding_causal_bottom_right"});
  if (rarely()) {
    p.window_left = one_of<std::int64_t>(generator, {0, 1, 16, 128});
    p.window_right = one_of<std::int64_t>(generator, {-1, 0, 16});
  }
  p.bias = rarely() ? one_of<std::string>(generator, {"pre_scale", "post_scale", "alibi"}) : "none";
  p.softmax = rarely() ? one_of<std::string>(generator, {"off_by_one", "learnable"}) : "vanilla";
  p.softcap = generator() % 8 == 0 ? 30 : 0;
  p.layout = one_of<std::string>(generator, {"bshd", "sbhd", "bhsd"});
  if (p.has_lengths() && generator() % 2 == 0) {
    p.layout = "thd";
    p.align = one_of<std::int64_t>(generator, {1, 16});
  }
  if (rarely() && p.layout != "bhsd" && p.dv == 0) {
    p.packing = one_of<std::string>(generator, {"kv_2hd", "kv_h2d"});
    if (p.kv_heads == 0 && p.sq == p.sk) {
      p.packing = one_of<std::string>(generator, {"qkv_3hd", "qkv_h3d"});
    }
  }
  p.dropout = rarely() ? 0.1 : 0;
  p.max_logit = generator() % 8 == 0;
  return p;
}

}  // namespace numcheck::test
