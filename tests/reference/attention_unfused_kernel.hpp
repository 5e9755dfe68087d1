// Emulated unfused attention: every intermediate tensor is stored in the tensors' format, sums are FP32.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "op/attention_params.hpp"
#include "op/mode.hpp"
#include "op_problem.hpp"

namespace numcheck::reference::testing {

using Outputs = std::map<std::string, std::vector<double>, std::less<>>;

/// Both directions of attention, layout bhsd, no lengths. Outputs are not rounded themselves.
class Unfused {
 public:
  op::AttentionParams p;
  std::string mode = "bf16";
  std::int64_t shifted_mask = 0;  ///< a fault: queries see so many keys more
  double scale_fault = 1;         ///< a fault unless it is 1: a factor of the scale
  bool forgets_dot = false;       ///< a fault: ds = p dp

  [[nodiscard]] core::Dtype format() const { return op::find_mode(mode)->first; }
  /// o and lse.
  [[nodiscard]] Outputs forward(const Inputs& in) const {
    Outputs out;
    out["o"].resize(static_cast<std::size_t>(p.batches * p.heads * p.sq * p.value_channels()));
    out["lse"].resize(static_cast<std::size_t>(p.batches * p.heads * p.sq));
    each_query(in, [&](const Query& query) {
      out["lse"][query.row] = static_cast<double>(query.lse);
      for (std::int64_t c = 0; c < p.value_channels(); ++c) {
        float sum = 0;
        for (std::size_t j = 0; j < query.weights.size(); ++j) {
          sum = std::fma(dropped(in, query, j), element(in, "v", query.keys + j, c, p.value_channels()), sum);
        }
        out["o"][query.row * static_cast<std::size_t>(p.value_channels()) + static_cast<std::size_t>(c)] =
            static_cast<double>(sum);
      }
    });
    return out;
  }
  /// Gradients.
  [[nodiscard]] Outputs backward(const Inputs& in) const {
    Outputs out, parts;
    const std::int64_t width = p.value_channels();
    const auto resize = [](std::vector<double>& x, std::int64_t size) { x.resize(static_cast<std::size_t>(size)); };
    resize(out["dq"], p.batches * p.heads * p.sq * p.d);
    resize(parts["dk"], p.batches * p.heads * p.sk * p.d);
    resize(parts["dv"], p.batches * p.heads * p.sk * width);
    resize(out["dbias"], p.has_bias_tensor() ? p.heads * p.sq * p.sk : 0);
    resize(out["dsoftmax_offset"], p.softmax == "learnable" ? p.heads : 0);
    each_query(in, [&](const Query& query) { add_gradients(in, query, out, parts); });
    add_heads(parts["dk"], p.d, out["dk"]);
    add_heads(parts["dv"], width, out["dv"]);
    return out;
  }

 private:
  struct Query {
    std::size_t row = 0, keys = 0;  ///< of all queries; first row of its keys
    std::int64_t head = 0, i = 0, batch = 0;
    op::KeyRange seen;
    std::vector<float> inner, weights;  ///< tanh of the cap; p; of all keys
    float lse = 0, sink = 0;
  };

  [[nodiscard]] float stored(float x) const {
    return static_cast<float>(core::round_to(static_cast<double>(x), format()));
  }
  [[nodiscard]] static float element(const Inputs& in, const char* port, std::size_t row, std::int64_t c,
                                     std::int64_t channels) {
    return static_cast<float>(
        in.find(port)->second[row * static_cast<std::size_t>(channels) + static_cast<std::size_t>(c)]);
  }
  [[nodiscard]] float dot(const Inputs& in, const char* a, std::size_t i, const char* b, std::size_t j,
                          std::int64_t channels) const {
    float sum = 0;
    for (std::int64_t c = 0; c < channels; ++c) {
      sum = std::fma(element(in, a, i, c, channels), element(in, b, j, c, channels), sum);
    }
    return sum;
  }
  /// A number of a query and a key after dropout, stored again.
  [[nodiscard]] float dropped(const Inputs& in, const Query& query, std::size_t j, float x) const {
    const auto at = query.row * static_cast<std::size_t>(p.sk) + j;
    return p.has_dropout() ? stored(x * static_cast<float>(in.find("dropout_mask")->second[at]) *
                                    static_cast<float>(p.keep_scale()))
                           : x;
  }
  [[nodiscard]] float dropped(const Inputs& in, const Query& query, std::size_t j) const {
    return dropped(in, query, j, query.weights[j]);
  }
  [[nodiscard]] float factor() const { return static_cast<float>(p.factor() * scale_fault); }

  template <class Body>
  void each_query(const Inputs& in, const Body& body) const {
    for (std::int64_t n = 0; n < p.batches * p.heads * p.sq; ++n) {
      Query query;
      query.row = static_cast<std::size_t>(n);
      query.i = n % p.sq;
      query.head = n / p.sq % p.heads;
      query.batch = n / p.sq / p.heads;
      query.keys =
          static_cast<std::size_t>((query.batch * p.key_heads() + query.head / (p.heads / p.key_heads())) * p.sk);
      query.seen = p.visible(query.i, p.sq, p.sk);
      query.seen.end = std::min(query.seen.end + shifted_mask, p.sk);
      weigh(in, query);
      body(query);
    }
  }

  [[nodiscard]] float score(const Inputs& in, Query& query, std::int64_t j) const {
    const float product = dot(in, "q", query.row, "k", query.keys + static_cast<std::size_t>(j), p.d);
    const auto place = static_cast<std::size_t>((query.head * p.sq + query.i) * p.sk + j);
    const float bias = p.has_bias_tensor() ? static_cast<float>(in.find("bias")->second[place]) : 0.0F;
    float x = p.bias == "pre_scale" ? stored(stored(stored(product) + bias) * factor()) : stored(product * factor());
    if (p.softcap != 0) {
      const auto cap = static_cast<float>(p.softcap);
      query.inner[static_cast<std::size_t>(j)] = stored(std::tanh(stored(x / cap)));
      x = stored(cap * query.inner[static_cast<std::size_t>(j)]);
    }
    if (p.bias == "alibi") {
      return stored(x - static_cast<float>(op::alibi_slope(query.head, p.heads)) *
                            static_cast<float>(std::abs(query.i + p.diagonal(p.sq, p.sk) - j)));
    }
    return p.bias == "post_scale" ? stored(x + bias) : x;
  }

  void weigh(const Inputs& in, Query& query) const {
    query.weights.resize(static_cast<std::size_t>(p.sk));
    query.inner.resize(query.weights.size());
    query.sink = p.softmax == "learnable" ? stored(element(in, "softmax_offset", 0, query.head, p.heads))
                 : p.softmax == "vanilla" ? -INFINITY
                                          : 0.0F;
    float largest = query.sink, sum = 0;
    for (std::int64_t j = query.seen.begin; j < query.seen.end; ++j) {
      query.weights[static_cast<std::size_t>(j)] = score(in, query, j);
      largest = std::max(largest, query.weights[static_cast<std::size_t>(j)]);
    }
    sum = std::exp(query.sink - largest);
    for (std::int64_t j = query.seen.begin; j < query.seen.end; ++j) {
      sum += std::exp(query.weights[static_cast<std::size_t>(j)] - largest);
    }
    for (std::int64_t j = query.seen.begin; j < query.seen.end; ++j) {
      float& weight = query.weights[static_cast<std::size_t>(j)];
      weight = stored(std::exp(weight - largest) / sum);
    }
    query.lse = largest + std::log(sum);
  }

  void add_gradients(const Inputs& in, const Query& query, Outputs& out, Outputs& parts) const {
    const std::int64_t width = p.value_channels();
    const auto own = static_cast<std::size_t>(query.batch * p.heads + query.head) * static_cast<std::size_t>(p.sk);
    const float given = forgets_dot ? 0.0F : dot(in, "do", query.row, "o", query.row, width);
    const bool before_scale = p.bias == "pre_scale";
    for (std::int64_t j = query.seen.begin; j < query.seen.end; ++j) {
      const auto key = static_cast<std::size_t>(j);
      const float dp = dropped(in, query, key, stored(dot(in, "do", query.row, "v", query.keys + key, width)));
      const float ds = stored(query.weights[key] * (dp - given));
      float dt = ds;
      if (p.softcap != 0) {
        const auto cap = static_cast<float>(p.softcap);
        const float y = query.inner[key];
        dt = stored(stored(stored(ds * cap) * (1 - y * y)) / cap);
      }
      dt = before_scale ? stored(dt * factor()) : dt;
      if (p.has_bias_tensor()) {
        out["dbias"][static_cast<std::size_t>((query.head * p.sq + query.i) * p.sk + j)] +=
            static_cast<double>(before_scale ? dt : ds);
      }
      const float scale = before_scale ? 1.0F : factor();
      for (std::int64_t c = 0; c < p.d; ++c) {
        const auto channel = static_cast<std::size_t>(c), d = static_cast<std::size_t>(p.d);
        out["dq"][query.row * d + channel] +=
            static_cast<double>(scale * dt * element(in, "k", query.keys + key, c, p.d));
        parts["dk"][(own + key) * d + channel] += static_cast<double>(scale * dt * element(in, "q", query.row, c, p.d));
      }
      for (std::int64_t c = 0; c < width; ++c) {
        parts["dv"][(own + key) * static_cast<std::size_t>(width) + static_cast<std::size_t>(c)] +=
            static_cast<double>(dropped(in, query, key) * element(in, "do", query.row, c, width));
      }
    }
    if (p.softmax == "learnable") {
      out["dsoftmax_offset"][static_cast<std::size_t>(query.head)] -=
          static_cast<double>(std::exp(query.sink - query.lse) * given);
    }
  }

  /// Heads that share keys: each one's gradients are stored before they are added.
  void add_heads(const std::vector<double>& parts, std::int64_t channels, std::vector<double>& sums) const {
    const std::int64_t group = p.heads / p.key_heads(), size = p.sk * channels;
    sums.resize(static_cast<std::size_t>(p.batches * p.key_heads() * size));
    for (std::size_t n = 0; n < parts.size(); ++n) {
      const auto head = static_cast<std::int64_t>(n) / size;
      const auto to = static_cast<std::size_t>(head / group * size + static_cast<std::int64_t>(n) % size);
      sums[to] += group == 1 ? parts[n] : core::round_to(parts[n], format());
    }
  }
};

}  // namespace numcheck::reference::testing
