#include "kernels/cuda/norm_row.cuh"
#include "kernels/cuda/residency.hpp"

namespace numcheck::kernels::cuda {
namespace {

constexpr NormLimits kLimits = {8, 4, 4, 1024};

/// Of the kernels whose threads read the next row while they compute this one and keep the weights in registers: 16-bit
/// rows have twice as many elements to a byte, so that computing them takes as long as their way from memory. FP32 rows
/// keep up without.
constexpr NormLimits kAheadLimits = {2, 2, 2, 512};

/// Threads of the largest block in which each holds so many groups: eight are for rows of a warp.
constexpr int most_threads(int held, bool ahead) {
  return ahead ? kAheadLimits.threads : held > kLimits.block_groups ? kRowsPerBlock * kWarp : kLimits.threads;
}

/// Statistics of a row, over the threads that share it: mean first, then squares around it.
template <bool kCentred, class Part>
__device__ __forceinline__ float2 statistics_of(const Part& x, float inverse_count, float epsilon,
                                                BlockSums<float>& sum_of_block) {
  float mean = 0.0f;
  if constexpr (kCentred) {
    float sum = 0.0f;
    x.each([&sum](int, int, const auto& group) {
#pragma unroll
      for (const auto value : group.at) {
        sum += to_float(value);
      }
    });
    mean = sum_of_block(sum) * inverse_count;
  }
  float squares = 0.0f;
  x.each([&squares, mean](int, int, const auto& group) {
#pragma unroll
    for (const auto value : group.at) {
      const float centred = to_float(value) - mean;
      squares += centred * centred;
    }
  });
  return {mean, rsqrtf(sum_of_block(squares) * inverse_count + epsilon)};
}

/// With kAhead the case is the plain one – gamma as it is, y in x's format, one rounding – and each block takes every
/// gridDim.x-th row (or few rows).
template <class In, int N, int kHeld, bool kAhead, bool kCentred>
__global__ void __launch_bounds__(most_threads(kHeld, kAhead), kAhead ? 2 : 1) norm_forward(NormForward p) {
  __shared__ float scratch[2][kReduceScratch];
  BlockSums<float> sum_of_block(scratch);
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.y;
  std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= p.rows) {
    return;  // a whole warp, which shares its row with no other
  }
  const int hidden = static_cast<int>(p.hidden);
  const ColumnPart<In, N, kAhead ? kHeld : 0> gamma(p.gamma.data, hidden);
  const ColumnPart<In, N, kAhead && kCentred ? kHeld : 0> beta(p.beta.data, hidden);
  GroupStore store(p.y, p.scale);
  RowPart<In, N, kHeld> x(p.x.data, row, hidden);
  for (bool more = true; more; row += step) {
    more = row + step < p.rows;
    RowPart<In, N, kHeld> next = x;
    if (kAhead && more) {
      next.advance(step);
    }
    const float2 statistics = statistics_of<kCentred>(x, 1.0f / static_cast<float>(hidden), p.epsilon, sum_of_block);
    const float mean = statistics.x;
    const float rsigma = statistics.y;
    if (threadIdx.x == 0) {
      p.rsigma[row] = rsigma;
      if constexpr (kCentred) {
        p.mu[row] = mean;
      }
    }
    x.each([&](int g, int column, const Vec<In, N>& group) {
      const Vec<In, N> gamma_group = gamma.at(g, column);
      Vec<In, N> beta_group = {};
      if constexpr (kCentred) {
        beta_group = beta.at(g, column);
      }
      Group<N> y;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        float product = rsigma * (to_float(group.at[i]) - mean);
        if (!kAhead && !kCentred && p.rounds_product) {
          product = rounded_through<In>(product);
        }
        y.at[i] = gamma_factor(gamma_group.at[i], kAhead ? GammaRule::plain : p.gamma_rule) * product;
        if constexpr (kCentred) {
          y.at[i] += to_float(beta_group.at[i]);
        }
      }
      if constexpr (kAhead) {
        rounded_vec<In>(y.at).store(static_cast<In*>(p.y.data) + row * hidden + column);
      } else {
        store(row * hidden + column, y, N, true);
      }
    });
    if (!kAhead && more) {
      next.advance(step);
    }
    x = next;
  }
  store.raise(p.amax);
}

template <class In, int N, int kHeld, bool kAhead, bool kCentred>
cudaError_t launch_held(const NormForward& p, const NormBlock& block, cudaStream_t stream) {
  const auto kernel = &norm_forward<In, N, kHeld, kAhead, kCentred>;
  std::int64_t blocks = (p.rows + block.rows - 1) / block.rows;
  if (kAhead) {
    const std::int64_t resident = resident_blocks(reinterpret_cast<const void*>(kernel), block.threads * block.rows, 0);
    blocks = blocks < resident ? blocks : resident;
  }
  kernel<<<static_cast<unsigned>(blocks), dim3(static_cast<unsigned>(block.threads), static_cast<unsigned>(block.rows)),
           0, stream>>>(p);
  return cudaGetLastError();
}

template <class In, int N, bool kCentred>
cudaError_t launch_grouped(const NormForward& p, cudaStream_t stream) {
  const std::int64_t groups = (p.hidden + N - 1) / N;
  if constexpr (sizeof(In) == 2 && N > 1) {
    const NormBlock ahead = norm_block(groups, kAheadLimits);
    const bool plain = p.gamma_rule == GammaRule::plain && (kCentred || !p.rounds_product);
    if (ahead.held > 0 && plain && p.scale == nullptr && p.y.storage == p.x.storage) {
      return ahead.held == 1 ? launch_held<In, N, 1, true, kCentred>(p, ahead, stream)
                             : launch_held<In, N, 2, true, kCentred>(p, ahead, stream);
    }
  }
  const NormBlock block = norm_block(groups, kLimits);
  switch (block.held) {
    case 1:
      return launch_held<In, N, 1, false, kCentred>(p, block, stream);
    case 2:
      return launch_held<In, N, 2, false, kCentred>(p, block, stream);
    case 4:
      return launch_held<In, N, 4, false, kCentred>(p, block, stream);
    case 8:
      return launch_held<In, N, 8, false, kCentred>(p, block, stream);
    default:
      return launch_held<In, N, 0, false, kCentred>(p, block, stream);
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
