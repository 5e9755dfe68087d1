#include "kernels/cuda/attention_pair_gradient.cuh"

namespace numcheck::kernels::cuda {
namespace {

constexpr int kWarpsOfDots = 8;

/// D of every query: the sum of the products of its output and the output's gradient; 0 beyond a sequence's length. One
/// warp per query.
template <class T>
__global__ void __launch_bounds__(kWarpsOfDots* kWarp) row_dots(AttentionBackward op, std::int64_t first_block) {
  const AttentionRules& rules = op.rules;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t row = (first_block + blockIdx.x) * kWarpsOfDots + threadIdx.x / kWarp;
  const std::int64_t head = row / rules.sq;
  if (head >= std::int64_t{rules.batches} * rules.heads) {
    return;
  }
  const int batch = static_cast<int>(head / rules.heads), i = static_cast<int>(row % rules.sq);
  const Span all{0, Sequence(rules, batch).queries};
  const Rows<T> gradient(op.gradient, batch, static_cast<int>(head % rules.heads), all);
  const Rows<T> output(op.o, batch, static_cast<int>(head % rules.heads), all);
  float sum = 0;
  for (int channel = lane * kFour; channel < op.o.channels; channel += kWarp * kFour) {
    const Group<kFour> a = gradient.four(i, channel), b = output.four(i, channel);
#pragma unroll
    for (int c = 0; c < kFour; ++c) {
      sum = fmaf(a.at[c], b.at[c], sum);
    }
  }
  sum = warp_sum(sum);
  if (lane == 0) {
    op.dots[row] = sum;
  }
}

template <int kChannels>
__device__ __forceinline__ void scale_sums(float scale, PerChannel<kChannels>& sums) {
#pragma unroll
  for (int r = 0; r < kOwnRows; ++r) {
#pragma unroll
    for (int c = 0; c < kChannels / kSharing; ++c) {
      sums[r][c] *= scale;
    }
  }
}

/// Blocks on a multiprocessor: their registers hold two products besides the sums, or one besides the sums of two gradients.
constexpr int kResident = 2;

/// The gradient of the queries. A block has kTile positions of a head, and kChannels of its channels.
template <class T, int kChannels>
__global__ void __launch_bounds__(kTileThreads, kResident)
    differentiate_queries(AttentionBackward op, std::int64_t first_block) {
  __shared__ TileMemory memory;
  Stages stages(memory);
  const AttentionRules& rules = op.rules;
  const BlockPlace place(first_block + blockIdx.x, op.dq, kChannels, rules.heads);
  const int shared = place.head / (rules.heads / rules.kv_heads);
  const Sequence sequence(rules, place.batch);
  const Band band = sequence.band(rules);
  const Span mine{0, band.own_length};
  const Span seen = band.seen_by(place.first, place.first + kTile - 1);
  const Rows<T> queries(op.q, place.batch, place.head, mine), gradients(op.gradient, place.batch, place.head, mine);
  const Rows<T> keys(op.k, place.batch, shared, seen), values(op.v, place.batch, shared, seen);
  PerChannel<kChannels> sums = {};
  for (int first = seen.begin; first < seen.end; first += kTile) {
    const TileAt at(band, place.first, first);
    PerPair s, dp;
    multiply_rows(queries, at.own, keys, first, stages, s);
    multiply_rows(gradients, at.own, values, first, stages, dp);
    differentiate<Own::queries, T>(op, sequence, band, at, place.batch, place.head, Wanted::product_gradient, s, dp);
    store_weights(memory.weights, s);
    add_weighted<kChannels>(memory.weights, keys, place.channel, band, at, stages, sums);
  }
  scale_sums<kChannels>(rules.scale, sums);
  store_rows<kChannels, T>(op.dq, place.batch, place.head, place.first, place.channel, band.own_length, sums);
}

/// The gradient of the queries from derivatives of the scores that differentiate_keys has kept.
template <class T, int kChannels>
__global__ void __launch_bounds__(kTileThreads, kResident)
    sum_over_keys(AttentionBackward op, std::int64_t first_block) {
  __shared__ TileMemory memory;
  Stages stages(memory);
  const AttentionRules& rules = op.rules;
  const BlockPlace place(first_block + blockIdx.x, op.dq, kChannels, rules.heads);
  const Band band = Sequence(rules, place.batch).band(rules);
  const Span seen = band.seen_by(place.first, place.first + kTile - 1);
  const Rows<T> keys(op.k, place.batch, place.head / (rules.heads / rules.kv_heads), seen);
  const KeptPairs kept(op, place.batch, place.head);
  PerChannel<kChannels> sums = {};
  PerPair weights;
  kept.read(band, TileAt(band, place.first, seen.begin), weights);
  for (int first = seen.begin; first < seen.end; first += kTile) {
    const TileAt at(band, place.first, first);
    __syncthreads();  // everyone has read the weights of the tile before
    store_weights(memory.weights, weights);
    if (first + kTile < seen.end) {  // on their way while this tile is summed
      kept.read(band, TileAt(band, place.first, first + kTile), weights);
    }
    add_weighted<kChannels>(memory.weights, keys, place.channel, band, at, stages, sums);
  }
  scale_sums<kChannels>(rules.scale, sums);
  store_rows<kChannels, T>(op.dq, place.batch, place.head, place.first, place.channel, band.own_length, sums);
}

/// Shared memory of a block with two gradients.
struct TwoGradients {
  TileMemory tile;
  float slopes[kTile * kTile];  ///< weights times the derivative of the cap, which wait for the second product
};

/// The gradients of keys and values, which have the weights in common. A block has kTile positions of a head, and kChannels of
/// the channels of both.
template <class T, int kChannels>
__global__ void __launch_bounds__(kTileThreads, kResident)
    differentiate_keys(AttentionBackward op, std::int64_t first_block) {
  constexpr int kChannelsAtOnce = 8, kPositionsAtOnce = 4;  // measured: with twice as many, loads wait for registers
  __shared__ TwoGradients memory;
  Stages stages(memory.tile);
  float* const weights = memory.tile.weights;
  const AttentionRules& rules = op.rules;
  const int sharing = rules.heads / rules.kv_heads;  // heads of queries that share keys
  const BlockPlace place(first_block + blockIdx.x, op.dk.channels < op.dv.channels ? op.dv : op.dk, kChannels,
                         rules.kv_heads);
  const Sequence sequence(rules, place.batch);
  const Band band = sequence.band(rules).transposed();
  const Span mine{0, band.own_length};
  const Span seen = band.seen_by(place.first, place.first + kTile - 1);
  const Rows<T> keys(op.k, place.batch, place.head, mine), values(op.v, place.batch, place.head, mine);
  PerChannel<kChannels> of_keys = {}, of_values = {};
  for (int h = 0; h < sharing; ++h) {
    const int head = place.head * sharing + h;
    const Rows<T> queries(op.q, place.batch, head, seen), gradients(op.gradient, place.batch, head, seen);
    for (int first = seen.begin; first < seen.end; first += kTile) {
      const TileAt at(band, place.first, first);
      PerPair s, x;
      multiply_rows<kChannelsAtOnce>(keys, at.own, queries, first, stages, s);
      Scores<T>::for_each_pair([&](int r, int c) { x[r][c] = 1; });
      weigh<Own::keys, T, true>(op, sequence, band, at, place.batch, head, s, &x);
      PerPair slopes;
      Scores<T>::for_each_pair([&](int r, int c) { slopes[r][c] = s[r][c]; });
      multiply_seen<Own::keys, T>(band, at, slopes, x);
      store_weights(memory.slopes, slopes);
      drop<Own::keys, T>(rules, band, at, place.batch, head, s);
      store_weights(weights, s);
      add_weighted<kChannels, kPositionsAtOnce>(weights, gradients, place.channel, band, at, stages, of_values);
      multiply_rows<kChannelsAtOnce>(values, at.own, gradients, first, stages, x);
      subtract_dots<Own::keys, T>(op, band, at, place.batch, head, x);
      load_weights(memory.slopes, s);
      multiply_seen<Own::keys, T>(band, at, s, x);
      if (op.pairs != nullptr && place.channel == 0) {
        KeptPairs(op, place.batch, head).keep(at, s);
      }
      store_weights(weights, s);
      add_weighted<kChannels, kPositionsAtOnce>(weights, queries, place.channel, band, at, stages, of_keys);
    }
  }
  scale_sums<kChannels>(rules.scale, of_keys);
  store_rows<kChannels, T>(op.dk, place.batch, place.head, place.first, place.channel, band.own_length, of_keys);
  store_rows<kChannels, T>(op.dv, place.batch, place.head, place.first, place.channel, band.own_length, of_values);
}

/// A block has a tile of the bias's gradient, and adds its sequences in their order.
template <class T>
__global__ void __launch_bounds__(kTileThreads, 3) bias_tiles(AttentionBackward op, std::int64_t first_block) {
  __shared__ TileMemory memory;
  Stages stages(memory);
  const AttentionRules& rules = op.rules;
  const int rows = (rules.sq + kTile - 1) / kTile, columns = (rules.sk + kTile - 1) / kTile;
  const std::int64_t block = first_block + blockIdx.x;
  const int first_key = static_cast<int>(block % columns) * kTile;
  const int first_query = static_cast<int>(block / columns % rows) * kTile;
  const int head = static_cast<int>(block / columns / rows);
  const int shared = head / (rules.heads / rules.kv_heads);
  const bool before_scale = rules.bias_kind == ScoreBias::pre_scale;
  PerPair sums = {};
  for (int batch = 0; batch < rules.batches; ++batch) {
    const Sequence sequence(rules, batch);
    const Band band = sequence.band(rules);
    const Span seen = band.seen_by(first_query, first_query + kTile - 1);
    if (seen.begin >= first_key + kTile || seen.end <= first_key) {
      continue;
    }
    const Span queries{0, sequence.queries};
    const TileAt at(band, first_query, first_key);
    PerPair s, dp;
    multiply_rows(Rows<T>(op.q, batch, head, queries), at.own, Rows<T>(op.k, batch, shared, seen), first_key, stages,
                  s);
    multiply_rows(Rows<T>(op.gradient, batch, head, queries), at.own, Rows<T>(op.v, batch, shared, seen), first_key,
                  stages, dp);
    differentiate<Own::queries, T>(op, sequence, band, at, batch, head,
                                   before_scale ? Wanted::product_gradient : Wanted::score_gradient, s, dp);
    Scores<T>::for_each_pair([&](int r, int c) { sums[r][c] += s[r][c]; });
  }
  const TileThread thread;
  T* const out = static_cast<T*>(op.dbias.data);
  Scores<T>::for_each_pair([&](int r, int c) {
    const int i = first_query + thread.own + r, j = first_key + thread.other + c;
    if (i < rules.sq && j < rules.sk) {
      out[(std::int64_t{head} * rules.sq + i) * rules.sk + j] =
          from_float<T>(before_scale ? rules.scale * sums[r][c] : sums[r][c]);
    }
  });
}

constexpr int kOffsetThreads = 256;

/// The gradient of one head's offset: each thread sums queries of the sequences in their order, then a tree.
__global__ void __launch_bounds__(kOffsetThreads) offset_gradients(AttentionBackward op) {
  __shared__ float scratch[kReduceScratch];
  const AttentionRules& rules = op.rules;
  const int head = static_cast<int>(blockIdx.x);
  const float offset = rules.offsets[head];
  float sum = 0;
  for (int batch = 0; batch < rules.batches; ++batch) {
    const int queries = Sequence(rules, batch).queries;
    const std::int64_t first = (std::int64_t{batch} * rules.heads + head) * rules.sq;
    const StatisticPlace statistic(rules, batch, head);
    for (int i = static_cast<int>(threadIdx.x); i < queries; i += kOffsetThreads) {
      sum = fmaf(expf(__fsub_rn(offset, op.lse[statistic.of(i)])), op.dots[first + i], sum);
    }
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) {
    op.dsoftmax_offset[head] = -sum;
  }
}

template <class T, int kChannels>
cudaError_t run_queries(const AttentionBackward& op, cudaStream_t stream) {
  return launch_blocks(BlockPlace::count(op.dq, kChannels, op.rules.batches, op.rules.heads),
                       [&](std::int64_t first, unsigned count) {
                         if (op.pairs != nullptr) {
                           sum_over_keys<T, kChannels><<<count, kTileThreads, 0, stream>>>(op, first);
                         } else {
                           differentiate_queries<T, kChannels><<<count, kTileThreads, 0, stream>>>(op, first);
                         }
                       });
}

template <class T, int kChannels>
cudaError_t run_keys(const AttentionBackward& op, cudaStream_t stream) {
  const HeadTensor& wider = op.dk.channels < op.dv.channels ? op.dv : op.dk;
  return launch_blocks(BlockPlace::count(wider, kChannels, op.rules.batches, op.rules.kv_heads),
                       [&](std::int64_t first, unsigned count) {
                         differentiate_keys<T, kChannels><<<count, kTileThreads, 0, stream>>>(op, first);
                       });
}

template <class T>
cudaError_t run_bias(const AttentionBackward& op, cudaStream_t stream) {
  const std::int64_t rows = (op.rules.sq + kTile - 1) / kTile, columns = (op.rules.sk + kTile - 1) / kTile;
  return launch_blocks(rows * columns * op.rules.heads, [&](std::int64_t first, unsigned count) {
    bias_tiles<T><<<count, kTileThreads, 0, stream>>>(op, first);
  });
}

template <class T>
cudaError_t run(const AttentionBackward& op, cudaStream_t stream) {
  const AttentionRules& rules = op.rules;
  const std::int64_t rows = std::int64_t{rules.batches} * rules.heads * rules.sq;
  cudaError_t status = launch_blocks((rows + kWarpsOfDots - 1) / kWarpsOfDots, [&](std::int64_t first, unsigned count) {
    row_dots<T><<<count, kWarpsOfDots * kWarp, 0, stream>>>(op, first);
  });
  const auto then = [&status](const auto& step) { status = status == cudaSuccess ? step() : status; };
  // Heads of more than 128 channels take one block per 128, each with scores of its own.
  constexpr int kFewChannels = 64;
  const bool has_few = larger(op.dk.channels, op.dv.channels) <= kFewChannels;
  then([&] { return has_few ? run_keys<T, 64>(op, stream) : run_keys<T, 128>(op, stream); });
  then([&] {
    return op.dq.channels <= kFewChannels ? run_queries<T, 64>(op, stream) : run_queries<T, 128>(op, stream);
  });
  if (op.dbias.data != nullptr) {
    then([&] { return run_bias<T>(op, stream); });
  }
  if (op.dsoftmax_offset != nullptr) {
    then([&] {
      offset_gradients<<<static_cast<unsigned>(rules.heads), kOffsetThreads, 0, stream>>>(op);
      return cudaGetLastError();
    });
  }
  return status;
}

}  // namespace

cudaError_t launch_attention_bwd(const AttentionBackward& launch, cudaStream_t stream) {
  const Storage storage = launch.q.tensor.storage;
  for (const Tensor* tensor :
       {&launch.k.tensor, &launch.v.tensor, &launch.gradient.tensor, &launch.o.tensor, &launch.dq.tensor,
        &launch.dk.tensor, &launch.dv.tensor, &launch.rules.bias, &launch.rules.dropout_mask, &launch.dbias}) {
    if (is_fp8(storage) || (tensor->data != nullptr && tensor->storage != storage)) {
      return cudaErrorNotSupported;
    }
  }
  if (launch.rules.sq > kMaxPositions || launch.rules.sk > kMaxPositions) {
    return cudaErrorInvalidValue;
  }
  return visit_wide_storage(storage, [&](auto type) { return run<typename decltype(type)::type>(launch, stream); });
}

}  // namespace numcheck::kernels::cuda
