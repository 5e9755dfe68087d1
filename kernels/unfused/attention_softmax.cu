#include "kernels/unfused/attention_kernels.hpp"
#include "kernels/unfused/score_row.cuh"

namespace numcheck::kernels::unfused {
namespace {

/// A block per row. Each thread reads and writes its own columns only, so `weights` may be `products`.
template <class T>
__global__ void __launch_bounds__(kThreads)
    weigh_rows(AttentionRules rules, const T* products, T* weights, RowStatistics statistics) {
  __shared__ float scratch[kThreads / kWarp];
  for (std::int64_t row = blockIdx.x; row < row_count(rules); row += gridDim.x) {
    const ScoreRow at = score_row(rules, row);
    const float sink = sink_score<T>(rules, at.head);
    const T* from = products + row * rules.sk;
    T* to = weights + row * rules.sk;
    // Column j belongs to thread j % kThreads in every pass.
    const std::int64_t first = at.begin - at.begin % kThreads + threadIdx.x;
    float largest = -INFINITY;
    for (std::int64_t j = first; j < at.end; j += kThreads) {
      if (sees(at, j)) {
        largest = fmaxf(largest, score_of<T>(rules, at, from[j], j));
      }
    }
    largest = block_reduce(largest, Larger{}, scratch);
    if (statistics.max_logit != nullptr && threadIdx.x == 0) {
      statistics.max_logit[row] = largest;  // -infinity if there is no key
    }
    largest = fmaxf(largest, sink);
    float sum = 0;
    for (std::int64_t j = first; j < at.end; j += kThreads) {
      if (sees(at, j)) {
        sum += expf(score_of<T>(rules, at, from[j], j) - largest);
      }
    }
    sum = block_reduce(sum, Add{}, scratch);
    if (rules.sink != Sink::none) {
      sum += expf(sink - largest);
    }
    for (std::int64_t j = threadIdx.x; j < rules.sk; j += kThreads) {
      to[j] = from_float<T>(sees(at, j) ? expf(score_of<T>(rules, at, from[j], j) - largest) / sum : 0.0f);
    }
    if (statistics.lse != nullptr && threadIdx.x == 0) {
      statistics.lse[row] = largest + logf(sum);  // -infinity if there is neither a key nor a sink
    }
  }
}

/// A thread per element.
template <class T>
__global__ void __launch_bounds__(kThreads)
    drop_weights(const T* weights, const T* mask, float scale, std::int64_t elements, T* dropped) {
  for (std::int64_t k = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; k < elements;
       k += std::int64_t{gridDim.x} * kThreads) {
    dropped[k] = from_float<T>(to_float(weights[k]) * to_float(mask[k]) * scale);
  }
}

}  // namespace

cudaError_t launch_weights(const AttentionRules& rules, const void* products, void* weights,
                           const RowStatistics& statistics, cudaStream_t stream) {
  const unsigned blocks = blocks_for(rules.batches * rules.heads * rules.sq);
  return launch_for(rules.format, [&](auto type) {
    using T = typename decltype(type)::type;
    weigh_rows<T>
        <<<blocks, kThreads, 0, stream>>>(rules, static_cast<const T*>(products), static_cast<T*>(weights), statistics);
  });
}

cudaError_t launch_dropout(const AttentionRules& rules, const void* weights, void* dropped, cudaStream_t stream) {
  const std::int64_t elements = row_count(rules) * rules.sk;
  return launch_for(rules.format, [&](auto type) {
    using T = typename decltype(type)::type;
    drop_weights<T><<<blocks_for((elements + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
        static_cast<const T*>(weights), static_cast<const T*>(rules.dropout_mask), rules.keep_scale, elements,
        static_cast<T*>(dropped));
  });
}

}  // namespace numcheck::kernels::unfused
