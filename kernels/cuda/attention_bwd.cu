#include "kernels/cuda/attention_dropout.cuh"
#include "kernels/cuda/attention_kernel.hpp"
#include "kernels/cuda/attention_score.cuh"

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

/// What is summed: weights, or derivatives of the scores after or before their cap.
enum class Wanted { weights, score_gradient, product_gradient };

/// Turns products (of queries and keys in s, of the output's gradients and values in dp) into what is wanted, in s; 0
/// where the query does not see the key, and of queries whose scores are all -infinity. Weights are those after dropout.
/// `head`: of the queries.
template <Own own, class T>
__device__ __forceinline__ void differentiate(const AttentionBackward& op, const Sequence& sequence, const Band& band,
                                              const TileAt& at, int batch, int head, Wanted wanted, PerPair& s,
                                              PerPair& dp) {
  const TileThread thread;
  const std::int64_t first = (std::int64_t{batch} * op.rules.heads + head) * op.rules.sq;
  const StatisticPlace statistic(op.rules, batch, head);
  const Scores<T> scores(op.rules, sequence, head);
  const auto sees = [&](int r, int c) {
    return at.whole || band.sees(at.own + thread.own + r, at.other + thread.other + c);
  };
  if (wanted != Wanted::weights) {
    drop<own, T>(op.rules, band, at, batch, head, dp);
    Scores<T>::for_each_pair([&](int r, int c) {
      if (sees(r, c)) {
        dp[r][c] -= op.dots[first + Scores<T>::template pair_of<own>(at, r, c).query];
      }
    });
  }
  if (wanted == Wanted::product_gradient) {
    scores.template apply<own, true>(band, at, s, &dp);
  } else {
    scores.template apply<own>(band, at, s);
  }
  Scores<T>::for_each_pair([&](int r, int c) {
    float weight = 0;
    if (sees(r, c)) {
      const float lse = op.lse[statistic.of(Scores<T>::template pair_of<own>(at, r, c).query)];
      weight = lse == -INFINITY ? 0.0f : expf(__fsub_rn(s[r][c], lse));
      weight = wanted == Wanted::weights ? weight : weight * dp[r][c];
    }
    s[r][c] = weight;
  });
  if (wanted == Wanted::weights) {
    drop<own, T>(op.rules, band, at, batch, head, s);
  }
}

/// Which gradient a block computes.
enum class Gradient { q, k, v };

/// The tensors of the two sides of the scores: what the scores and what the weights' gradients are products of.
struct Sides {
  const HeadTensor* scored;
  const HeadTensor* weighed;
};

template <Own own>
__device__ __forceinline__ Sides side_of(const AttentionBackward& op) {
  return own == Own::queries ? Sides{&op.q, &op.gradient} : Sides{&op.k, &op.v};
}

/// Two blocks on a multiprocessor: their registers hold two products besides the sums. Without the second product,
/// three.
template <Gradient gradient>
inline constexpr int kResident = gradient == Gradient::v ? 3 : 2;

/// A block has kTile positions of a head of the gradient, and kChannels of its channels.
template <class T, Gradient gradient, int kChannels>
__global__ void __launch_bounds__(kTileThreads, kResident<gradient>)
    differentiate_tiles(AttentionBackward op, std::int64_t first_block) {
  constexpr Own own = gradient == Gradient::q ? Own::queries : Own::keys;
  constexpr Own opposite = own == Own::queries ? Own::keys : Own::queries;
  __shared__ TileMemory memory;
  Stages stages(memory);
  const AttentionRules& rules = op.rules;
  const HeadTensor& out = gradient == Gradient::q ? op.dq : gradient == Gradient::k ? op.dk : op.dv;
  const int sharing = rules.heads / rules.kv_heads;  // heads of queries that share keys
  const BlockPlace place(first_block + blockIdx.x, out, kChannels, own == Own::queries ? rules.heads : rules.kv_heads);
  const Sequence sequence(rules, place.batch);
  const Band keys_of_queries = sequence.band(rules);
  const Band band = own == Own::queries ? keys_of_queries : keys_of_queries.transposed();
  const Span mine{0, band.own_length};
  const Span seen = band.seen_by(place.first, place.first + kTile - 1);
  const Sides ours = side_of<own>(op), theirs = side_of<opposite>(op);
  const Rows<T> own_scored(*ours.scored, place.batch, place.head, mine);
  const Rows<T> own_weighed(*ours.weighed, place.batch, place.head, mine);
  PerChannel<kChannels> sums = {};
  for (int h = 0; h < (own == Own::queries ? 1 : sharing); ++h) {
    const int other_head = own == Own::queries ? place.head / sharing : place.head * sharing + h;
    const int query_head = own == Own::queries ? place.head : other_head;
    const Rows<T> scored(*theirs.scored, place.batch, other_head, seen);
    const Rows<T> weighed(*theirs.weighed, place.batch, other_head, seen);
    for (int first = seen.begin; first < seen.end; first += kTile) {
      const TileAt at(band, place.first, first);
      PerPair s, dp;
      multiply_rows(own_scored, at.own, scored, first, stages, s);
      if (gradient != Gradient::v) {
        multiply_rows(own_weighed, at.own, weighed, first, stages, dp);
      }
      constexpr Wanted wanted = gradient == Gradient::v ? Wanted::weights : Wanted::product_gradient;
      differentiate<own, T>(op, sequence, band, at, place.batch, query_head, wanted, s, dp);
      store_weights(memory.weights, s);
      add_weighted<kChannels>(memory.weights, gradient == Gradient::v ? weighed : scored, place.channel, band, at,
                              stages, sums);
    }
  }
  if (gradient != Gradient::v) {
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r) {
#pragma unroll
      for (int c = 0; c < kChannels / kSharing; ++c) {
        sums[r][c] *= rules.scale;
      }
    }
  }
  store_rows<kChannels, T>(out, place.batch, place.head, place.first, place.channel, band.own_length, sums);
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

template <class T, Gradient gradient, int kChannels>
cudaError_t run_gradient(const AttentionBackward& op, const HeadTensor& out, int heads, cudaStream_t stream) {
  const std::int64_t blocks = BlockPlace::count(out, kChannels, op.rules.batches, heads);
  return launch_blocks(blocks, [&](std::int64_t first, unsigned count) {
    differentiate_tiles<T, gradient, kChannels><<<count, kTileThreads, 0, stream>>>(op, first);
  });
}

/// Heads of more than 128 channels take one block per 128, each with the scores of its own.
template <class T, Gradient gradient>
cudaError_t run_gradient(const AttentionBackward& op, const HeadTensor& out, int heads, cudaStream_t stream) {
  return out.channels <= 64 ? run_gradient<T, gradient, 64>(op, out, heads, stream)
                            : run_gradient<T, gradient, 128>(op, out, heads, stream);
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
  then([&] { return run_gradient<T, Gradient::q>(op, op.dq, rules.heads, stream); });
  then([&] { return run_gradient<T, Gradient::k>(op, op.dk, rules.kv_heads, stream); });
  then([&] { return run_gradient<T, Gradient::v>(op, op.dv, rules.kv_heads, stream); });
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
