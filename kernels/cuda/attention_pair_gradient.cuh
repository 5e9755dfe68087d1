// Derivatives of the scores of a tile's pairs, from the products of queries and keys and of the output's gradients and
// values; and where they wait for the kernel that sums them over keys.
#pragma once

#include "kernels/cuda/attention_dropout.cuh"
#include "kernels/cuda/attention_kernel.hpp"
#include "kernels/cuda/attention_score.cuh"

namespace numcheck::kernels::cuda {

/// What is summed over pairs besides the weights: derivatives of the scores after or before their cap.
enum class Wanted { score_gradient, product_gradient };

/// Turns products of queries and keys into weights, without dropout: 0 where the query does not see the key, and of queries
/// whose scores are all -infinity. kSlopes: multiplies `slopes` with the derivative of the cap. `head`: of the queries.
template <Own own, class T, bool kSlopes = false>
__device__ __forceinline__ void weigh(const AttentionBackward& op, const Sequence& sequence, const Band& band,
                                      const TileAt& at, int batch, int head, PerPair& s, PerPair* slopes = nullptr) {
  const TileThread thread;
  const StatisticPlace statistic(op.rules, batch, head);
  Scores<T>(op.rules, sequence, head).template apply<own, kSlopes>(band, at, s, slopes);
  Scores<T>::for_each_pair([&](int r, int c) {
    float weight = 0;
    if (at.whole || band.sees(at.own + thread.own + r, at.other + thread.other + c)) {
      const float lse = op.lse[statistic.of(Scores<T>::template pair_of<own>(at, r, c).query)];
      weight = lse == -INFINITY ? 0.0f : expf(__fsub_rn(s[r][c], lse));
    }
    s[r][c] = weight;
  });
}

/// Turns products of the output's gradients and values into derivatives of the weights, less what every weight of the
/// query takes from the others. Where the query does not see the key, they mean nothing.
template <Own own, class T>
__device__ __forceinline__ void subtract_dots(const AttentionBackward& op, const Band& band, const TileAt& at,
                                              int batch, int head, PerPair& dp) {
  const TileThread thread;
  const std::int64_t first = (std::int64_t{batch} * op.rules.heads + head) * op.rules.sq;
  drop<own, T>(op.rules, band, at, batch, head, dp);
  Scores<T>::for_each_pair([&](int r, int c) {
    if (at.whole || band.sees(at.own + thread.own + r, at.other + thread.other + c)) {
      dp[r][c] -= op.dots[first + Scores<T>::template pair_of<own>(at, r, c).query];
    }
  });
}

/// weights *= x where the query sees the key: elsewhere they are 0, and x may be anything.
template <Own own, class T>
__device__ __forceinline__ void multiply_seen(const Band& band, const TileAt& at, PerPair& weights, const PerPair& x) {
  const TileThread thread;
  Scores<T>::for_each_pair([&](int r, int c) {
    if (at.whole || band.sees(at.own + thread.own + r, at.other + thread.other + c)) {
      weights[r][c] *= x[r][c];
    }
  });
}

/// Turns both products into what is wanted, in s: weights times derivatives of the weights.
template <Own own, class T>
__device__ __forceinline__ void differentiate(const AttentionBackward& op, const Sequence& sequence, const Band& band,
                                              const TileAt& at, int batch, int head, Wanted wanted, PerPair& s,
                                              PerPair& dp) {
  subtract_dots<own, T>(op, band, at, batch, head, dp);
  if (wanted == Wanted::product_gradient) {
    weigh<own, T, true>(op, sequence, band, at, batch, head, s, &dp);
  } else {
    weigh<own, T>(op, sequence, band, at, batch, head, s);
  }
  multiply_seen<own, T>(band, at, s, dp);
}

/// Where a head's derivatives wait, [keys, queries]. Where a query does not see the key, nothing may have been kept.
class KeptPairs {
 public:
  /// `head`: of the queries.
  __device__ __forceinline__ KeptPairs(const AttentionBackward& op, int batch, int head)
      : first_(op.pairs + (std::int64_t{batch} * op.rules.heads + head) * op.rules.sk * op.rules.sq),
        queries_(op.rules.sq),
        keys_(op.rules.sk),
        aligned_(op.rules.sq % kFour == 0) {}

  /// Keeps a tile whose own positions are keys.
  __device__ __forceinline__ void keep(const TileAt& at, const PerPair& of_keys) const {
    const TileThread thread;
    const int query = at.other + thread.other, count = queries_ - query;
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r) {
      const int key = at.own + thread.own + r;
      if (key < keys_ && count > 0) {
        Group<kFour> group;
#pragma unroll
        for (int c = 0; c < kFour; ++c) {
          group.at[c] = of_keys[r][c];
        }
        store_as(first_ + std::int64_t{key} * queries_ + query, group, count,
                 aligned_ && at.other % kFour == 0 && count >= kFour);
      }
    }
  }

  /// Reads a tile whose own positions are queries; 0 where they do not see the key.
  __device__ __forceinline__ void read(const Band& band, const TileAt& at, PerPair& of_queries) const {
    const TileThread thread;
#pragma unroll
    for (int c = 0; c < kOtherRows; ++c) {
      const int key = at.other + thread.other + c;
#pragma unroll
      for (int r = 0; r < kOwnRows; r += kFour) {
        const int query = at.own + thread.own + r, count = queries_ - query;
        Group<kFour> group = {};
        if (key < keys_ && count > 0) {
          group = load_group<kFour>(first_ + std::int64_t{key} * queries_ + query, count, aligned_ && count >= kFour);
        }
#pragma unroll
        for (int n = 0; n < kFour; ++n) {
          of_queries[r + n][c] = at.whole || band.sees(query + n, key) ? group.at[n] : 0.0f;
        }
      }
    }
  }

 private:
  float* first_;
  int queries_, keys_;
  bool aligned_;
};

}  // namespace numcheck::kernels::cuda
