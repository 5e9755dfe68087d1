#include "kernels/cuda/attention_dropout.cuh"
#include "kernels/cuda/attention_kernel.hpp"
#include "kernels/cuda/attention_score.cuh"

namespace numcheck::kernels::cuda {
namespace {

/// Logarithm of what the denominator has besides the keys.
__device__ __forceinline__ float sink_of(const AttentionRules& rules, int head) {
  return rules.sink == Sink::learnable ? rules.offsets[head] : rules.sink == Sink::one ? 0.0f : -INFINITY;
}

/// Per query of the block, the largest score so far and the sum of weights relative to it, sink included, and the largest
/// score of a key. In shared memory, because the registers are full; the threads that share a query are in one warp.
struct OnlineSoftmax {
  float largest[kTile];
  float sum[kTile];
  float top[kTile];

  __device__ __forceinline__ void start(float sink) {
    const TileThread thread;
    if (thread.lane < kOwnRows) {
      largest[thread.own + thread.lane] = sink;
      top[thread.own + thread.lane] = -INFINITY;
      sum[thread.own + thread.lane] = sink == -INFINITY ? 0.0f : isnan(sink) ? sink : 1.0f;
    }
    __syncwarp();
  }

  /// Turns the scores of a tile into weights, and rescales the sums of earlier tiles.
  template <int kChannels>
  __device__ __forceinline__ void weigh(const Band& band, const TileAt& at, PerPair& s, PerChannel<kChannels>& sums) {
    const TileThread thread;
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r) {
      bool seen[kOtherRows];
      float highest = -INFINITY;
#pragma unroll
      for (int c = 0; c < kOtherRows; ++c) {
        seen[c] = at.whole || band.sees(at.own + thread.own + r, at.other + thread.other + c);
        highest = seen[c] ? fmaxf(highest, s[r][c]) : highest;
      }
      const float before = largest[thread.own + r];
      highest = warp_reduce(highest, Larger{}, kSharing);
      if (thread.lane == 0) {
        top[thread.own + r] = fmaxf(top[thread.own + r], highest);
      }
      highest = fmaxf(before, highest);
      const float shrink = highest == before ? 1.0f : expf(__fsub_rn(before, highest));
      // While all scores are -infinity, they weigh nothing.
      const float subtracted = highest == -INFINITY ? 0.0f : highest;
      float total = 0;
#pragma unroll
      for (int c = 0; c < kOtherRows; ++c) {
        // Not fused with the scaling: the difference of equal scores is 0.
        s[r][c] = seen[c] ? expf(__fsub_rn(s[r][c], subtracted)) : 0.0f;
        total += s[r][c];
      }
      total = fmaf(sum[thread.own + r], shrink, warp_reduce(total, Add{}, kSharing));
      __syncwarp();
      if (thread.lane == 0) {
        largest[thread.own + r] = highest;
        sum[thread.own + r] = total;
      }
#pragma unroll
      for (int c = 0; c < kChannels / kSharing; ++c) {
        sums[r][c] *= shrink;
      }
    }
    __syncwarp();
  }
};

/// Divides by the sums of weights, and stores the statistics if this block has the first channels.
template <int kChannels>
__device__ __forceinline__ void finish(const AttentionForward& op, const BlockPlace& place, const Band& band,
                                       const OnlineSoftmax& softmax, PerChannel<kChannels>& sums) {
  const TileThread thread;
  const StatisticPlace statistic(op.rules, place.batch, place.head);
  const int queries = op.rules.q_starts == nullptr ? op.rules.sq : band.own_length;
#pragma unroll
  for (int r = 0; r < kOwnRows; ++r) {
    const int i = place.first + thread.own + r;
    const Span seen = band.seen_by(i, i);
    const bool is_blind = seen.end <= seen.begin;
    const float sum = softmax.sum[thread.own + r];
#pragma unroll
    for (int c = 0; c < kChannels / kSharing; ++c) {
      sums[r][c] = is_blind ? 0.0f : __fdiv_rn(sums[r][c], sum);
    }
    if (place.channel == 0 && thread.lane == 0 && i < queries) {
      if (op.max_logit != nullptr) {
        op.max_logit[statistic.of(i)] = is_blind ? -INFINITY : softmax.top[thread.own + r];
      }
      if (is_blind) {
        op.lse[statistic.of(i)] = i < band.own_length ? sink_of(op.rules, place.head) : -INFINITY;
      } else {
        // A sum of 0 means that all scores are -infinity, and that weights and sum are undefined.
        op.lse[statistic.of(i)] = sum == 0 ? NAN : softmax.largest[thread.own + r] + logf(sum);
      }
    }
  }
}

/// Blocks on a multiprocessor: what their registers allow without spilling.
template <int kChannels>
inline constexpr int kResident = kChannels <= 128 ? 3 : 2;

/// A block has kTile queries of a head, and kChannels channels of their outputs.
template <class T, int kChannels>
__global__ void __launch_bounds__(kTileThreads, kResident<kChannels>)
    attend(AttentionForward op, std::int64_t first_block) {
  __shared__ TileMemory memory;
  __shared__ OnlineSoftmax softmax;
  Stages stages(memory);
  const BlockPlace place(first_block + blockIdx.x, op.o, kChannels, op.rules.heads);
  const Sequence sequence(op.rules, place.batch);
  const Band band = sequence.band(op.rules);
  const Span seen = band.seen_by(place.first, place.first + kTile - 1);
  const int shared = place.head / (op.rules.heads / op.rules.kv_heads);
  const Rows<T> q(op.q, place.batch, place.head, {0, sequence.queries});
  const Rows<T> k(op.k, place.batch, shared, seen);
  const Rows<T> v(op.v, place.batch, shared, seen);
  const Scores<T> scores(op.rules, sequence, place.head);
  softmax.start(sink_of(op.rules, place.head));
  PerChannel<kChannels> sums = {};
  for (int first = seen.begin; first < seen.end; first += kTile) {
    const TileAt at(band, place.first, first);
    PerPair s;
    multiply_rows(q, at.own, k, first, stages, s);
    scores.template apply<Own::queries>(band, at, s);
    softmax.weigh<kChannels>(band, at, s, sums);
    drop<Own::queries, T>(op.rules, band, at, place.batch, place.head, s);
    store_weights(memory.weights, s);
    add_weighted<kChannels>(memory.weights, v, place.channel, band, at, stages, sums);
  }
  finish<kChannels>(op, place, band, softmax, sums);
  store_rows<kChannels, T>(op.o, place.batch, place.head, place.first, place.channel, sequence.queries, sums);
}

template <class T, int kChannels>
cudaError_t run(const AttentionForward& op, cudaStream_t stream) {
  const std::int64_t blocks = BlockPlace::count(op.o, kChannels, op.rules.batches, op.rules.heads);
  return launch_blocks(blocks, [&](std::int64_t first, unsigned count) {
    attend<T, kChannels><<<count, kTileThreads, 0, stream>>>(op, first);
  });
}

}  // namespace

cudaError_t launch_attention_fwd(const AttentionForward& launch, cudaStream_t stream) {
  const Storage storage = launch.q.tensor.storage;
  for (const Tensor* tensor :
       {&launch.k.tensor, &launch.v.tensor, &launch.o.tensor, &launch.rules.bias, &launch.rules.dropout_mask}) {
    if (is_fp8(storage) || (tensor->data != nullptr && tensor->storage != storage)) {
      return cudaErrorNotSupported;
    }
  }
  if (launch.rules.sq > kMaxPositions || launch.rules.sk > kMaxPositions) {
    return cudaErrorInvalidValue;
  }
  return visit_wide_storage(storage, [&](auto type) {
    using T = typename decltype(type)::type;
    // Heads of more than 256 channels take one block per 256, each with the scores of its own.
    return launch.v.channels <= 64    ? run<T, 64>(launch, stream)
           : launch.v.channels <= 128 ? run<T, 128>(launch, stream)
                                      : run<T, 256>(launch, stream);
  });
}

}  // namespace numcheck::kernels::cuda
