#include "kernels/cuda/norm_row.cuh"

namespace numcheck::kernels::cuda {
namespace {

/// A group of 16-bit elements holds twice as many numbers as one of FP32: eight per thread would spill.
template <class In>
constexpr NormLimits kLimits = {sizeof(In) == 2 ? 4 : 8, 4, 4, 1024};

/// Threads of the largest block whose threads hold `held` groups each: eight only where each row has one warp.
constexpr int most_threads(int held) {
  return held > 4 ? kRowsPerBlock * kWarp : 1024;
}

/// Statistics of a row, over the threads that share it: the mean first, then squared deviations from it.
template <bool kCentred, class Part>
__device__ __forceinline__ float2 statistics_of(const Part& x, float inverse_count, float epsilon,
                                                BlockSums<float>& sum_of_block) {
  float mean = 0.0f;
  if constexpr (kCentred) {
    float sum = 0.0f;
    x.each([&sum](int, const auto& group) {
#pragma unroll
      for (const auto value : group.at) {
        sum += to_float(value);
      }
    });
    mean = sum_of_block(sum) * inverse_count;
  }
  float squares = 0.0f;
  x.each([&squares, mean](int, const auto& group) {
#pragma unroll
    for (const auto value : group.at) {
      const float centred = to_float(value) - mean;
      squares += centred * centred;
    }
  });
  return {mean, rsqrtf(sum_of_block(squares) * inverse_count + epsilon)};
}

/// One row (or a few rows) per block: blocks that come and go hide memory latency better than a loop over rows with
/// prefetching, which costs registers. kPlain: gamma as stored, y in x's format, one rounding.
template <class In, int N, int kHeld, bool kPlain, bool kCentred>
__global__ void __launch_bounds__(most_threads(kHeld)) norm_forward(NormForward p) {
  __shared__ float scratch[2][kReduceScratch];
  BlockSums<float> sum_of_block(scratch);
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= p.rows) {
    return;  // a whole warp, and no other warp shares its row
  }
  const int hidden = static_cast<int>(p.hidden);
  const RowPart<In, N, kHeld> x(p.x.data, row, hidden);
  const float2 statistics = statistics_of<kCentred>(x, 1.0f / static_cast<float>(hidden), p.epsilon, sum_of_block);
  const float mean = statistics.x;
  const float rsigma = statistics.y;
  if (threadIdx.x == 0) {
    p.rsigma[row] = rsigma;
    if constexpr (kCentred) {
      p.mu[row] = mean;
    }
  }
  GroupStore store(p.y, p.scale);
  x.each([&](int column, const Vec<In, N>& group) {
    const auto gamma = Vec<In, N>::load(static_cast<const In*>(p.gamma.data) + column);
    Vec<In, N> beta = {};
    if constexpr (kCentred) {
      beta = Vec<In, N>::load(static_cast<const In*>(p.beta.data) + column);
    }
    Group<N> y;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      float product = rsigma * (to_float(group.at[i]) - mean);
      if (!kPlain && !kCentred && p.rounds_product) {
        product = rounded_through<In>(product);
      }
      y.at[i] = gamma_factor(gamma.at[i], kPlain ? GammaRule::plain : p.gamma_rule) * product;
      if constexpr (kCentred) {
        y.at[i] += to_float(beta.at[i]);
      }
    }
    if constexpr (kPlain) {
      rounded_vec<In>(y.at).store(static_cast<In*>(p.y.data) + row * hidden + column);
    } else {
      store(row * hidden + column, y, N, true);
    }
  });
  if constexpr (!kPlain) {
    store.raise(p.amax);
  }
}

template <class In, int N, int kHeld, bool kCentred>
cudaError_t launch_held(const NormForward& p, const NormBlock& block, cudaStream_t stream) {
  const bool plain = p.gamma_rule == GammaRule::plain && (kCentred || !p.rounds_product) && p.scale == nullptr &&
                     p.y.storage == p.x.storage;
  const auto blocks = static_cast<unsigned>((p.rows + block.rows - 1) / block.rows);
  const dim3 threads(static_cast<unsigned>(block.threads), static_cast<unsigned>(block.rows));
  if (plain) {
    norm_forward<In, N, kHeld, true, kCentred><<<blocks, threads, 0, stream>>>(p);
  } else {
    norm_forward<In, N, kHeld, false, kCentred><<<blocks, threads, 0, stream>>>(p);
  }
  return cudaGetLastError();
}

template <class In, int N, bool kCentred>
cudaError_t launch_grouped(const NormForward& p, cudaStream_t stream) {
  const NormBlock block = norm_block((p.hidden + N - 1) / N, kLimits<In>);
  switch (block.held) {
    case 1:
      return launch_held<In, N, 1, kCentred>(p, block, stream);
    case 2:
      return launch_held<In, N, 2, kCentred>(p, block, stream);
    case 4:
      return launch_held<In, N, 4, kCentred>(p, block, stream);
    case 8:
      if constexpr (kLimits<In>.warp_groups >= 8) {
        return launch_held<In, N, 8, kCentred>(p, block, stream);
      }
      return cudaErrorInvalidConfiguration;
    default:
      return launch_held<In, N, 0, kCentred>(p, block, stream);
  }
}

template <bool kCentred>
cudaError_t launch_forward(const NormForward& p, cudaStream_t stream) {
  if (p.rows > 0x7fffffff || p.hidden > 0x3fffffff || p.hidden < 1) {
    return cudaErrorInvalidConfiguration;
  }
  if (p.rows == 0) {
    return cudaSuccess;
  }
  return visit_wide_storage(p.x.storage, [&](auto type) {
    using In = typename decltype(type)::type;
    constexpr int N = kPerAccess<In>;
    const bool aligned = p.hidden % N == 0 && groups_aligned(p.x, N) && groups_aligned(p.gamma, N) &&
                         groups_aligned(p.beta, N) && groups_aligned(p.y, N);
    return aligned ? launch_grouped<In, N, kCentred>(p, stream) : launch_grouped<In, 1, kCentred>(p, stream);
  });
}

}  // namespace

cudaError_t launch_layernorm_fwd(const NormForward& launch, cudaStream_t stream) {
  return launch_forward<true>(launch, stream);
}

cudaError_t launch_rmsnorm_fwd(const NormForward& launch, cudaStream_t stream) {
  return launch_forward<false>(launch, stream);
}

}  // namespace numcheck::kernels::cuda
