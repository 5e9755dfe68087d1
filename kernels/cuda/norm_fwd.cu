#include "kernels/cuda/norm_row.cuh"

namespace numcheck::kernels::cuda {
namespace {

constexpr NormLimits kLimits = {8, 4, 4, 1024};

/// Threads of the largest block in which each holds so many groups: eight are for rows of a warp.
constexpr int most_threads(int held) {
  return held > kLimits.block_groups ? kRowsPerBlock * kWarp : kLimits.threads;
}

/// Statistics of a row, over the threads that share it: mean first, then squares around it.
template <bool kCentred, class Part>
__device__ __forceinline__ float2 statistics_of(const Part& x, float inverse_count, float epsilon, float* scratch) {
  float mean = 0.0f;
  if constexpr (kCentred) {
    float sum = 0.0f;
    x.each([&sum](int, int, const auto& group) {
#pragma unroll
      for (const auto value : group.at) {
        sum += to_float(value);
      }
    });
    mean = block_sum(sum, scratch) * inverse_count;
  }
  float squares = 0.0f;
  x.each([&squares, mean](int, int, const auto& group) {
#pragma unroll
    for (const auto value : group.at) {
      const float centred = to_float(value) - mean;
      squares += centred * centred;
    }
  });
  return {mean, rsqrtf(block_sum(squares, scratch) * inverse_count + epsilon)};
}

template <class In, int N, int kHeld, bool kCentred>
__global__ void __launch_bounds__(most_threads(kHeld)) norm_forward(NormForward p) {
  __shared__ float scratch[kReduceScratch];
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= p.rows) {
    return;  // a whole warp, which shares its row with no other
  }
  const int hidden = static_cast<int>(p.hidden);
  const RowPart<In, N, kHeld> x(p.x.data, row, hidden);
  const float2 statistics = statistics_of<kCentred>(x, 1.0f / static_cast<float>(hidden), p.epsilon, scratch);
  const float mean = statistics.x;
  const float rsigma = statistics.y;
  if (threadIdx.x == 0) {
    p.rsigma[row] = rsigma;
    if constexpr (kCentred) {
      p.mu[row] = mean;
    }
  }
  GroupStore store(p.y, p.scale);
  x.each([&](int, int column, const Vec<In, N>& group) {
    const auto gamma = Vec<In, N>::load(static_cast<const In*>(p.gamma.data) + column);
    Vec<In, N> beta = {};
    if constexpr (kCentred) {
      beta = Vec<In, N>::load(static_cast<const In*>(p.beta.data) + column);
    }
    Group<N> y;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      float product = rsigma * (to_float(group.at[i]) - mean);
      if (!kCentred && p.rounds_product) {
        product = rounded_through<In>(product);
      }
      y.at[i] = gamma_factor(gamma.at[i], p.gamma_rule) * product;
      if constexpr (kCentred) {
        y.at[i] += to_float(beta.at[i]);
      }
    }
    store(row * hidden + column, y, N, true);
  });
  store.raise(p.amax);
}

template <class In, int N, bool kCentred>
cudaError_t launch_grouped(const NormForward& p, cudaStream_t stream) {
  const NormBlock block = norm_block((p.hidden + N - 1) / N, kLimits);
  const auto blocks = static_cast<unsigned>((p.rows + block.rows - 1) / block.rows);
  const auto run = [&](auto kernel) {
    kernel<<<blocks, dim3(static_cast<unsigned>(block.threads), static_cast<unsigned>(block.rows)), 0, stream>>>(p);
    return cudaGetLastError();
  };
  switch (block.held) {
    case 1:
      return run(&norm_forward<In, N, 1, kCentred>);
    case 2:
      return run(&norm_forward<In, N, 2, kCentred>);
    case 4:
      return run(&norm_forward<In, N, 4, kCentred>);
    case 8:
      return run(&norm_forward<In, N, 8, kCentred>);
    default:
      return run(&norm_forward<In, N, 0, kCentred>);
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
