// Which keys a query sees. Masks and windows leave a band beside the diagonal, which looks the same from the keys'
// side.
#pragma once

#include "kernels/cuda/attention_kernel.hpp"

namespace numcheck::kernels::cuda {

/// Positions [begin, end); empty if end <= begin.
struct Span {
  int begin;
  int end;
};

/// More than any distance between two positions, and small enough to be added to one.
inline constexpr int kUnlimited = 1 << 29;
inline constexpr int kMaxPositions = 1 << 28;

__host__ __device__ __forceinline__ int smaller(int a, int b) {
  return a < b ? a : b;
}
__host__ __device__ __forceinline__ int larger(int a, int b) {
  return a > b ? a : b;
}

/// Position `own` sees position `other`, and is seen by it, if lower <= other - own <= upper and both exist.
struct Band {
  int lower;
  int upper;
  int own_length;
  int other_length;

  __host__ __device__ bool sees(int own, int other) const {
    const int distance = other - own;
    return lower <= distance && distance <= upper && own < own_length && other < other_length;
  }

  /// What any position of [first, last] sees: no other position is seen by none of them.
  __host__ __device__ Span seen_by(int first, int last) const {
    if (last >= own_length) {
      last = own_length - 1;
    }
    if (first > last) {
      return {0, 0};
    }
    return {larger(0, first + lower), smaller(other_length, last + upper + 1)};
  }

  /// True if each of `count` positions from `own` sees each of `count` positions from `other`.
  __host__ __device__ bool is_whole(int own, int other, int count) const {
    return sees(own, other) && sees(own, other + count - 1) && sees(own + count - 1, other) &&
           sees(own + count - 1, other + count - 1);
  }

  /// The same band from the other side.
  __host__ __device__ Band transposed() const { return {-upper, -lower, other_length, own_length}; }
};

/// One sequence: its lengths, its diagonal (column minus row), and which keys its queries see.
struct Sequence {
  int queries;
  int keys;
  int diagonal;

  __host__ __device__ Sequence(const AttentionRules& rules, int batch)
      : queries(rules.q_lengths == nullptr ? rules.sq : larger(0, smaller(rules.q_lengths[batch], rules.sq))),
        keys(rules.kv_lengths == nullptr ? rules.sk : larger(0, smaller(rules.kv_lengths[batch], rules.sk))),
        diagonal(rules.top_left ? 0 : keys - queries) {}

  /// Own positions are queries, others are keys.
  __host__ __device__ Band band(const AttentionRules& rules) const {
    const int before = rules.window_left < 0 ? -kUnlimited : diagonal - rules.window_left;
    const int after = rules.window_right < 0 ? kUnlimited : diagonal + rules.window_right;
    return {before, rules.causal ? smaller(after, diagonal) : after, queries, keys};
  }
};

}  // namespace numcheck::kernels::cuda
