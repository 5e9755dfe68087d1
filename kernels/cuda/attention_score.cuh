// Scores from products of queries and keys.
#pragma once

#include "kernels/cuda/attention_tile.cuh"

namespace numcheck::kernels::cuda {

/// Which side of the scores a block's own positions are.
enum class Own { queries, keys };

/// How products of one head of one sequence become scores.
template <class T>
class Scores {
 public:
  __device__ __forceinline__ Scores(const AttentionRules& rules, const Sequence& sequence, int head)
      : scale_(rules.scale),
        softcap_(rules.softcap),
        kind_(rules.bias_kind),
        slope_(kind_ == ScoreBias::alibi ? rules.slopes[head] : 0.0f),
        diagonal_(sequence.diagonal),
        sk_(rules.sk),
        bias_(static_cast<const T*>(rules.bias.data) + std::int64_t{head} * rules.sq * rules.sk) {}

  /// Turns products into scores, where a position sees the other; elsewhere the results mean nothing. Every operation
  /// is rounded on its own, so that equal products give equal scores wherever they are computed. kSlopes: multiplies
  /// `slopes` with the derivative of the cap.
  template <Own own, bool kSlopes = false>
  __device__ __forceinline__ void apply(const Band& band, const TileAt& at, PerPair& s,
                                        PerPair* slopes = nullptr) const {
    if (kind_ == ScoreBias::pre_scale) {
      add_bias<own>(band, at, s);
    }
    for_each_pair([&](int r, int c) { s[r][c] = __fmul_rn(scale_, s[r][c]); });
    if (softcap_ != 0) {
      for_each_pair([&](int r, int c) {
        const float bent = tanhf(__fdiv_rn(s[r][c], softcap_));
        s[r][c] = __fmul_rn(softcap_, bent);
        if (kSlopes) {
          (*slopes)[r][c] *= fmaf(-bent, bent, 1.0f);
        }
      });
    }
    if (kind_ == ScoreBias::post_scale) {
      add_bias<own>(band, at, s);
    } else if (kind_ == ScoreBias::alibi) {
      for_each_pair([&](int r, int c) {
        const Pair pair = pair_of<own>(at, r, c);
        const int distance = abs(pair.query + diagonal_ - pair.key);
        s[r][c] = __fsub_rn(s[r][c], __fmul_rn(slope_, static_cast<float>(distance)));
      });
    }
  }

  struct Pair {
    int query;
    int key;
  };
  /// The query and the key behind a number of this thread.
  template <Own own>
  __device__ __forceinline__ static Pair pair_of(const TileAt& at, int r, int c) {
    const TileThread thread;
    const int mine = at.own + thread.own + r, other = at.other + thread.other + c;
    return own == Own::queries ? Pair{mine, other} : Pair{other, mine};
  }

  /// body(r, c) for all numbers of a thread.
  template <class Body>
  __device__ __forceinline__ static void for_each_pair(const Body& body) {
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r) {
#pragma unroll
      for (int c = 0; c < kOtherRows; ++c) {
        body(r, c);
      }
    }
  }

 private:
  template <Own own>
  __device__ __forceinline__ void add_bias(const Band& band, const TileAt& at, PerPair& s) const {
    const TileThread thread;
    for_each_pair([&](int r, int c) {
      if (at.whole || band.sees(at.own + thread.own + r, at.other + thread.other + c)) {
        const Pair pair = pair_of<own>(at, r, c);
        s[r][c] = __fadd_rn(s[r][c], to_float(bias_[std::int64_t{pair.query} * sk_ + pair.key]));
      }
    });
  }

  float scale_, softcap_;
  ScoreBias kind_;
  float slope_;
  int diagonal_, sk_;
  const T* bias_;
};

/// Where the log-sum-exps of a head's queries are: that of query i is element first + i stride.
struct StatisticPlace {
  std::int64_t first;
  int stride;

  __device__ __forceinline__ StatisticPlace(const AttentionRules& rules, int batch, int head)
      : first(rules.q_starts == nullptr ? (std::int64_t{batch} * rules.heads + head) * rules.sq
                                        : std::int64_t{rules.q_starts[batch]} * rules.heads + head),
        stride(rules.q_starts == nullptr ? 1 : rules.heads) {}
  __device__ __forceinline__ std::int64_t of(int query) const { return first + std::int64_t{query} * stride; }
};

/// Calls launch(first, blocks) until `total` blocks, which may be more than a grid holds, have been launched.
template <class Launch>
cudaError_t launch_blocks(std::int64_t total, const Launch& launch) {
  constexpr std::int64_t kMaxGrid = 0x7fffffff;
  for (std::int64_t first = 0; first < total; first += kMaxGrid) {
    launch(first, static_cast<unsigned>(total - first < kMaxGrid ? total - first : kMaxGrid));
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess) {
      return status;
    }
  }
  return cudaSuccess;
}

/// What a block computes: channels from `channel` on, of kTile positions from `first` on, of one head.
struct BlockPlace {
  int first;
  int channel;
  int head;
  int batch;

  /// The last positions come first: under causal masks their queries see most.
  __device__ __forceinline__ BlockPlace(std::int64_t block, const HeadTensor& of, int channels, int heads) {
    const int tiles = (of.positions + kTile - 1) / kTile;
    const int chunks = (of.channels + channels - 1) / channels;
    first = (tiles - 1 - static_cast<int>(block % tiles)) * kTile;
    block /= tiles;
    channel = static_cast<int>(block % chunks) * channels;
    block /= chunks;
    head = static_cast<int>(block % heads);
    batch = static_cast<int>(block / heads);
  }

  [[nodiscard]] static std::int64_t count(const HeadTensor& of, int channels, int batches, int heads) {
    const std::int64_t tiles = (of.positions + kTile - 1) / kTile;
    const std::int64_t chunks = (of.channels + channels - 1) / channels;
    return tiles * chunks * batches * heads;
  }
};

}  // namespace numcheck::kernels::cuda
