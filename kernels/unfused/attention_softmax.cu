#include "kernels/unfused/attention_kernels.hpp"
#include "kernels/unfused/score_row.cuh"

namespace numcheck::kernels::unfused {
namespace {

/// A block per row. Each thread reads and writes its own columns only, so `weights` may be `products`.
template <class T>
__global__ void __launch_bounds__(kThreads)
    weigh_rows(AttentionRules rules, const T* products, T* weights, float* lse) {
  __shared__ float scratch[kThreads / kWarp];
  for (std::int64_t row = blockIdx.x; row < row_count(rules); row += gridDim.x) {
    const ScoreRow at = score_row(rules, row);
    const float sink = sink_score<T>(rules, at.head);
    const T* from = products + row * rules.sk;
    T* to = weights + row * rules.sk;
    // Column j belongs to thread j % kThreads in every pass.
    const std::int64_t first = at.begin - at.begin % kThreads + threadIdx.x;
    float largest = sink;
    for (std::int64_t j = first; j < at.end; j += kThreads) {
      if (sees(at, j)) {
        largest = fmaxf(largest, score_of<T>(rules, at, from[j], j));
      }
    }
    largest = block_reduce(largest, Larger{}, scratch);
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
    if (lse != nullptr && threadIdx.x == 0) {
      lse[row] = largest + logf(sum);  // -infinity if there is neither a key nor a sink
    }
  }
}

}  // namespace

cudaError_t launch_weights(const AttentionRules& rules, const void* products, void* weights, float* lse,
                           cudaStream_t stream) {
  const unsigned blocks = blocks_for(rules.batches * rules.heads * rules.sq);
  return launch_for(rules.format, [&](auto type) {
    using T = typename decltype(type)::type;
    weigh_rows<T>
        <<<blocks, kThreads, 0, stream>>>(rules, static_cast<const T*>(products), static_cast<T*>(weights), lse);
  });
}

}  // namespace numcheck::kernels::unfused
