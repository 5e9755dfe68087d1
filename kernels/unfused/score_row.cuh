// One row of scores: what its query sees, and how its products become scores.
#pragma once

#include "kernels/unfused/element.cuh"

namespace numcheck::kernels::unfused {

/// Query i of one head. It sees the keys [begin, end); a query beyond its sequence sees none.
struct ScoreRow {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t i = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t own = 0;  ///< its key on the diagonal
  float slope = 0;       ///< of Bias::alibi
};

__host__ __device__ __forceinline__ std::int64_t row_count(const AttentionRules& rules) {
  return rules.batches * rules.heads * rules.sq;
}

__device__ __forceinline__ std::int64_t queries_of(const AttentionRules& rules, std::int64_t batch) {
  return rules.q_lengths == nullptr ? rules.sq : rules.q_lengths[batch];
}

/// op::alibi_slope
__device__ __forceinline__ float alibi_slope(std::int64_t head, std::int64_t heads) {
  const std::int64_t n = std::int64_t{1} << (63 - __clzll(heads));
  const double power = static_cast<double>(n);
  const double exponent =
      head < n ? 8 * static_cast<double>(head + 1) / power : 4 * static_cast<double>(2 * (head - n) + 1) / power;
  return static_cast<float>(exp2(-exponent));
}

/// op::AttentionParams::visible
__device__ __forceinline__ ScoreRow score_row(const AttentionRules& rules, std::int64_t row) {
  ScoreRow at;
  at.i = row % rules.sq;
  at.head = row / rules.sq % rules.heads;
  at.batch = row / rules.sq / rules.heads;
  const std::int64_t queries = queries_of(rules, at.batch);
  const std::int64_t keys = rules.kv_lengths == nullptr ? rules.sk : rules.kv_lengths[at.batch];
  at.own = at.i + (rules.top_left ? 0 : keys - queries);
  at.end = keys;
  if (rules.window_left >= 0 && at.own - rules.window_left > 0) {
    at.begin = at.own - rules.window_left;
  }
  if (rules.window_right >= 0 && at.own + rules.window_right + 1 < at.end) {
    at.end = at.own + rules.window_right + 1;
  }
  if (rules.causal && at.own + 1 < at.end) {
    at.end = at.own + 1;
  }
  if (at.i >= queries || at.end < at.begin) {
    at.end = at.begin;
  }
  at.slope = rules.bias == Bias::alibi ? alibi_slope(at.head, rules.heads) : 0;
  return at;
}

__device__ __forceinline__ bool sees(const ScoreRow& at, std::int64_t j) {
  return j >= at.begin && j < at.end;
}

template <class T>
__device__ __forceinline__ float bias_at(const AttentionRules& rules, const ScoreRow& at, std::int64_t j) {
  const T* bias = static_cast<const T*>(rules.bias_tensor);
  return to_float(bias[(at.head * rules.sq + at.i) * rules.sk + j]);
}

/// The score that the cap is applied to.
template <class T>
__device__ __forceinline__ float uncapped_score(const AttentionRules& rules, const ScoreRow& at, T product,
                                                std::int64_t j) {
  const float x = to_float(product);
  return rules.bias == Bias::pre_scale
             ? rounded_through<T>(rounded_through<T>(x + bias_at<T>(rules, at, j)) * rules.scale)
             : x;
}

/// tanh(x / softcap)
template <class T>
__device__ __forceinline__ float cap_of(const AttentionRules& rules, float x) {
  return rounded_through<T>(tanhf(rounded_through<T>(x / rules.softcap)));
}

template <class T>
__device__ __forceinline__ float score_of(const AttentionRules& rules, const ScoreRow& at, T product, std::int64_t j) {
  float x = uncapped_score<T>(rules, at, product, j);
  if (rules.softcap > 0) {
    x = rounded_through<T>(rules.softcap * cap_of<T>(rules, x));
  }
  if (rules.bias == Bias::post_scale) {
    x = rounded_through<T>(x + bias_at<T>(rules, at, j));
  } else if (rules.bias == Bias::alibi) {
    const std::int64_t distance = at.own < j ? j - at.own : at.own - j;
    x = rounded_through<T>(x - at.slope * static_cast<float>(distance));
  }
  return x;
}

/// The sink's score; -infinity without one.
template <class T>
__device__ __forceinline__ float sink_score(const AttentionRules& rules, std::int64_t head) {
  switch (rules.sink) {
    case Sink::one:
      return 0;
    case Sink::learnable:
      return rounded_through<T>(rules.softmax_offset[head]);
    case Sink::none:
      break;
  }
  return -INFINITY;
}

}  // namespace numcheck::kernels::unfused
