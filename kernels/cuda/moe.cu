#include "kernels/cuda/element.cuh"
#include "kernels/cuda/moe_kernel.hpp"
#include "kernels/cuda/reduce.cuh"

namespace numcheck::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;

unsigned blocks_for(std::int64_t rows) {
  return static_cast<unsigned>(rows < kMaxBlocks ? rows : kMaxBlocks);
}

/// One block per copy.
template <class T>
__global__ void permute_rows(MoeLaunch p) {
  const T* x = static_cast<const T*>(p.x.data);
  T* y = static_cast<T*>(p.y.data);
  for (std::int64_t copy = blockIdx.x; copy < p.tokens * p.topk; copy += gridDim.x) {
    const std::int64_t place = p.map[copy];
    if (place < 0) {
      continue;
    }
    const T* from = x + copy % p.tokens * p.hidden;
    for (std::int64_t j = threadIdx.x; j < p.hidden; j += kThreads) {
      y[place * p.hidden + j] = from[j];
    }
  }
}

/// One block per token.
template <class T>
__global__ void unpermute_rows(MoeLaunch p) {
  const T* x = static_cast<const T*>(p.x.data);
  T* y = static_cast<T*>(p.y.data);
  for (std::int64_t token = blockIdx.x; token < p.tokens; token += gridDim.x) {
    for (std::int64_t j = threadIdx.x; j < p.hidden; j += kThreads) {
      float sum = 0;
      for (std::int64_t k = 0; k < p.topk; ++k) {
        const std::int64_t place = p.map[k * p.tokens + token];
        if (place < 0) {
          continue;
        }
        float term = to_float(x[place * p.hidden + j]);
        if (p.probs != nullptr) {
          // The intrinsics keep the compiler from fusing the product into the sum.
          term = rounded_through<T>(__fmul_rn(term, rounded_through<T>(p.probs[token * p.topk + k])));
        }
        sum = rounded_through<T>(__fadd_rn(sum, term));
      }
      y[token * p.hidden + j] = from_float<T>(sum);
    }
  }
}

/// exp(score - largest) of the marked experts, and their sum in every lane.
__device__ float exponentials(float* scores, const unsigned char* marked, int experts, int lane) {
  float largest = -INFINITY;
  for (int e = lane; e < experts; e += kWarp) {
    largest = marked == nullptr || marked[e] ? fmaxf(largest, scores[e]) : largest;
  }
  largest = warp_max(largest);
  float sum = 0;
  for (int e = lane; e < experts; e += kWarp) {
    const bool counts = marked == nullptr || marked[e];
    scores[e] = counts ? expf(scores[e] - largest) : 0.0f;
    sum += scores[e];
  }
  return warp_sum(sum);
}

/// Marks the largest score that is not yet marked; of equal ones, the one with the lowest index.
__device__ void mark_next(const float* scores, unsigned char* marked, int experts, int lane) {
  float best = -INFINITY;
  int at = experts;
  for (int e = lane; e < experts; e += kWarp) {
    if (!marked[e] && (at == experts || scores[e] > best)) {
      best = scores[e];
      at = e;
    }
  }
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(kWholeWarp, best, distance);
    const int other_at = __shfl_xor_sync(kWholeWarp, at, distance);
    const bool wins = other_at < experts && (at == experts || other > best || (other == best && other_at < at));
    best = wins ? other : best;
    at = wins ? other_at : at;
  }
  if (lane == 0 && at < experts) {
    marked[at] = 1;
  }
  __syncwarp();
}

/// One warp per token. Shared memory: a score and a mark for every expert.
template <class T>
__global__ void route_tokens(RouterLaunch p) {
  extern __shared__ float scores[];
  auto* marked = reinterpret_cast<unsigned char*>(scores + p.experts);
  const T* logits = static_cast<const T*>(p.logits.data);
  T* probs = static_cast<T*>(p.probs.data);
  const int lane = static_cast<int>(threadIdx.x);
  for (std::int64_t token = blockIdx.x; token < p.tokens; token += gridDim.x) {
    const std::int64_t first = token * p.experts;
    for (int e = lane; e < p.experts; e += kWarp) {
      const float x = to_float(logits[first + e]);
      scores[e] = p.score == RouterScore::sigmoid ? 1.0f / (1.0f + expf(-x)) : x;
      marked[e] = 0;
    }
    __syncwarp();
    float divisor = 1;
    if (p.score == RouterScore::softmax_pre) {
      divisor = exponentials(scores, nullptr, p.experts, lane);
      for (int e = lane; e < p.experts; e += kWarp) {
        scores[e] = scores[e] / divisor;
      }
      divisor = 1;
      __syncwarp();
    }
    for (int k = 0; k < p.topk; ++k) {
      mark_next(scores, marked, p.experts, lane);
    }
    if (p.score == RouterScore::softmax_post) {
      divisor = exponentials(scores, marked, p.experts, lane);
    } else if (p.score == RouterScore::sigmoid && p.topk > 1) {
      float sum = 0;
      for (int e = lane; e < p.experts; e += kWarp) {
        sum += marked[e] ? scores[e] : 0.0f;
      }
      divisor = warp_sum(sum) + 1e-20f;
    }
    __syncwarp();
    for (int e = lane; e < p.experts; e += kWarp) {
      probs[first + e] = from_float<T>(marked[e] ? scores[e] / divisor * p.scaling : 0.0f);
      p.map[first + e] = marked[e];
    }
    __syncwarp();
  }
}

}  // namespace

cudaError_t launch_moe_permute(const MoeLaunch& launch, cudaStream_t stream) {
  const std::int64_t copies = launch.tokens * launch.topk;
  if (copies == 0) {
    return cudaSuccess;
  }
  return visit_storage(launch.x.storage, [&](auto type) {
    permute_rows<typename decltype(type)::type><<<blocks_for(copies), kThreads, 0, stream>>>(launch);
    return cudaGetLastError();
  });
}

cudaError_t launch_moe_unpermute(const MoeLaunch& launch, cudaStream_t stream) {
  if (launch.tokens == 0) {
    return cudaSuccess;
  }
  return visit_wide_storage(launch.x.storage, [&](auto type) {
    unpermute_rows<typename decltype(type)::type><<<blocks_for(launch.tokens), kThreads, 0, stream>>>(launch);
    return cudaGetLastError();
  });
}

cudaError_t launch_router_topk(const RouterLaunch& launch, cudaStream_t stream) {
  if (launch.tokens == 0) {
    return cudaSuccess;
  }
  const std::size_t shared = static_cast<std::size_t>(launch.experts) * (sizeof(float) + 1);
  return visit_wide_storage(launch.logits.storage, [&](auto type) {
    route_tokens<typename decltype(type)::type><<<blocks_for(launch.tokens), kWarp, shared, stream>>>(launch);
    return cudaGetLastError();
  });
}

}  // namespace numcheck::kernels::cuda
