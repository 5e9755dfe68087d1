// The plain formula of attention, key by key.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "op/attention_fwd.hpp"
#include "op_problem.hpp"

namespace numcheck::reference::testing {

/// Forward, of these inputs.
struct PlainAttention {
  op::AttentionFwdParams p;
  const Inputs& inputs;

  [[nodiscard]] double element(const char* port, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c,
                               std::int64_t heads, std::int64_t length, std::int64_t channels) const {
    std::int64_t at = 0;
    if (p.layout == "thd") {
      at = ((token(port, b) + i) * heads + h) * channels + c;
    } else if (p.layout == "bshd") {
      at = ((b * length + i) * heads + h) * channels + c;
    } else if (p.layout == "sbhd") {
      at = ((i * p.batches + b) * heads + h) * channels + c;
    } else {
      at = ((b * heads + h) * length + i) * channels + c;
    }
    return inputs.find(port)->second.at(static_cast<std::size_t>(at));
  }

  /// Where sequence b begins in layout thd.
  [[nodiscard]] std::int64_t token(std::string_view port, std::int64_t b) const {
    const std::vector<double>& lengths = inputs.find(port == "k" || port == "v" ? "kv_lengths" : "q_lengths")->second;
    const auto multiple = static_cast<double>(p.align);
    double sum = 0;
    for (std::int64_t before = 0; before < b; ++before) {
      sum += std::ceil(lengths[static_cast<std::size_t>(before)] / multiple) * multiple;
    }
    return static_cast<std::int64_t>(sum);
  }

  [[nodiscard]] bool sees(std::int64_t i, std::int64_t j, std::int64_t queries, std::int64_t keys) const {
    const bool top_left = p.mask == "causal" || p.mask == "padding_causal";
    const std::int64_t relative = j - i - (top_left ? 0 : keys - queries);
    return j < keys && !(p.mask.find("causal") != std::string::npos && relative > 0) &&
           !(p.window_left >= 0 && -relative > p.window_left) && !(p.window_right >= 0 && relative > p.window_right);
  }

  /// lse, then the output's channels, then the largest score.
  [[nodiscard]] std::vector<double> row(std::int64_t b, std::int64_t h, std::int64_t i) const {
    const bool padded = p.has_lengths();
    const auto length = [&](const char* port, std::int64_t whole) {
      return padded ? static_cast<std::int64_t>(inputs.find(port)->second[static_cast<std::size_t>(b)]) : whole;
    };
    const std::int64_t queries = length("q_lengths", p.sq), keys = length("kv_lengths", p.sk);
    const std::int64_t shared = h / (p.heads / p.key_heads());
    std::vector<double> sums(static_cast<std::size_t>(1 + p.value_channels()));
    double largest = -std::numeric_limits<double>::infinity();
    sums[0] = p.softmax == "off_by_one"  ? 1
              : p.softmax == "learnable" ? std::exp(inputs.find("softmax_offset")->second[static_cast<std::size_t>(h)])
                                         : 0;
    for (std::int64_t j = 0; j < p.sk; ++j) {
      if (!sees(i, j, queries, keys)) {
        continue;
      }
      double s = 0;
      for (std::int64_t c = 0; c < p.d; ++c) {
        s += element("q", b, h, i, c, p.heads, p.sq, p.d) * element("k", b, shared, j, c, p.key_heads(), p.sk, p.d);
      }
      const double bias =
          p.has_bias_tensor() ? inputs.find("bias")->second[static_cast<std::size_t>((h * p.sq + i) * p.sk + j)] : 0;
      s = p.factor() * (s + (p.bias == "pre_scale" ? bias : 0));
      s = p.softcap != 0 ? p.softcap * std::tanh(s / p.softcap) : s;
      s += p.bias == "post_scale" ? bias : 0;
      if (p.bias == "alibi") {
        const std::int64_t diagonal = p.mask == "causal" || p.mask == "padding_causal" ? 0 : keys - queries;
        s -= op::alibi_slope(h, p.heads) * static_cast<double>(std::abs(i + diagonal - j));
      }
      sums[0] += std::exp(s);
      largest = std::max(largest, s);
      const auto at = static_cast<std::size_t>(((b * p.heads + h) * p.sq + i) * p.sk + j);
      const double kept = p.has_dropout() ? p.keep_scale() * inputs.find("dropout_mask")->second[at] : 1;
      for (std::int64_t c = 0; c < p.value_channels(); ++c) {
        sums[static_cast<std::size_t>(1 + c)] +=
            std::exp(s) * kept * element("v", b, shared, j, c, p.key_heads(), p.sk, p.value_channels());
      }
    }
    for (std::size_t c = 1; c < sums.size(); ++c) {
      sums[c] = sums[0] == 0 ? 0 : sums[c] / sums[0];
    }
    sums[0] = std::log(sums[0]);
    sums.push_back(largest);
    return sums;
  }
};

}  // namespace numcheck::reference::testing
