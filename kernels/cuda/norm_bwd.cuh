// Gradients of the row normalisations: the kernels.
#pragma once

#include "kernels/cuda/norm_row.cuh"

namespace numcheck::kernels::cuda {

/// Few warps share a row, so they wait only briefly for each other; each thread keeps the sums of its columns in
/// registers. Without dbeta there is room for 512 threads of 128 registers, with it for 384 of 168.
template <class In, bool kCentred>
inline constexpr NormLimits kBackwardLimits = {sizeof(In) == 2 ? 2 : 4, 4, 4, sizeof(In) == 2 && kCentred ? 384 : 512};

inline constexpr int kColumnsPerBlock = kWarp;  ///< of the kernels that sum columns
inline constexpr int kRowsAtOnce = 32;

/// mean(g), mean(g xh) and what they are computed from, for one row.
template <bool kCentred>
struct RowGradient {
  float mu;
  float rsigma;
  float mean;
  float mean_xh;

  __device__ __forceinline__ float normalised(float x) const { return rsigma * (kCentred ? x - mu : x); }
  /// dx of an element with weighted gradient g.
  __device__ __forceinline__ float input_gradient(float g, float xh) const {
    const float along = kCentred ? mean_xh * xh + mean : mean_xh * xh;
    return rsigma * (g - along);
  }
};

/// mu and rsigma of a row; its means are not computed yet.
template <bool kCentred>
__device__ __forceinline__ RowGradient<kCentred> saved_statistics(const NormBackward& p, std::int64_t row) {
  return {kCentred ? p.mu[row] : 0.0f, p.rsigma[row], 0.0f, 0.0f};
}

/// Adds the means to the row's statistics. `x` and `dz`: the thread's parts of the row.
/// kPlain: gamma is used as stored, nothing is added to dx, and the parts are full.
template <class In, int N, bool kCentred, bool kPlain, class Part>
__device__ __forceinline__ RowGradient<kCentred> row_gradient(const NormBackward& p, RowGradient<kCentred> gradient,
                                                              const Part& x, const Part& dz,
                                                              BlockSums<float2>& sum_of_block) {
  const GammaRule rule = kPlain ? GammaRule::plain : p.gamma_rule;
  float2 sums = {0.0f, 0.0f};
  x.with(dz, [&](int, int column, const Vec<In, N>& x_group, const Vec<In, N>& dz_group) {
    const auto weights = Vec<In, N>::load(static_cast<const In*>(p.gamma.data) + column);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float g = gamma_factor(weights.at[i], rule) * to_float(dz_group.at[i]);
      sums.x += g;
      sums.y += g * gradient.normalised(to_float(x_group.at[i]));
    }
  });
  sums = sum_of_block(sums);
  const float inverse_count = 1.0f / static_cast<float>(p.hidden);
  gradient.mean = sums.x * inverse_count;
  gradient.mean_xh = sums.y * inverse_count;
  return gradient;
}

/// dx of the thread's part of a row; calls visit(group, i, dz, xh) for every element.
template <class In, int N, bool kCentred, bool kPlain, class Part, class Visit>
__device__ __forceinline__ void store_input_gradient(const NormBackward& p, std::int64_t row,
                                                     const RowGradient<kCentred>& gradient, const Part& x,
                                                     const Part& dz, const Visit& visit) {
  const GammaRule rule = kPlain ? GammaRule::plain : p.gamma_rule;
  const bool adds = !kCentred && !kPlain && p.adds;
  x.with(dz, [&](int g, int column, const Vec<In, N>& x_group, const Vec<In, N>& dz_group) {
    const std::int64_t at = row * p.hidden + column;
    const auto weights = Vec<In, N>::load(static_cast<const In*>(p.gamma.data) + column);
    Vec<In, N> add = {};
    if (adds) {
      add = Vec<In, N>::load(static_cast<const In*>(p.add.data) + at);
    }
    float dx[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float dz_value = to_float(dz_group.at[i]);
      const float xh = gradient.normalised(to_float(x_group.at[i]));
      float value = gradient.input_gradient(gamma_factor(weights.at[i], rule) * dz_value, xh);
      if (adds) {
        value += to_float(add.at[i]);
      }
      dx[i] = value;
      visit(g, i, dz_value, xh);
    }
    rounded_vec<In>(dx).store(static_cast<In*>(p.dx.data) + at);
  });
}

/// Partial sums of dgamma in row `block` of p.partial, those of dbeta in the rows after the last block's.
__device__ __forceinline__ float* partial_row(const NormBackward& p, std::int64_t block, std::int64_t blocks,
                                              bool beta) {
  return p.partial + (block + (beta ? blocks : 0)) * p.hidden;
}

/// Sums one number per column over the rows of the block, in order, and stores the sums.
/// `shared`: blockDim.y * hidden numbers.
template <int N, int kHeld>
__device__ __forceinline__ void store_partial(const float (&sum)[kHeld][N], float* shared, float* to, int hidden) {
  const auto column = [](int g) { return (g * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * N; };
#pragma unroll
  for (int g = 0; g < kHeld; ++g) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (column(g) < hidden) {
        (blockDim.y == 1 ? to : shared + threadIdx.y * hidden)[column(g) + i] = sum[g][i];
      }
    }
  }
  if (blockDim.y == 1) {
    return;
  }
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  for (int j = thread; j < hidden; j += static_cast<int>(blockDim.x * blockDim.y)) {
    float total = 0.0f;
    for (int y = 0; y < static_cast<int>(blockDim.y); ++y) {
      total += shared[y * hidden + j];
    }
    to[j] = total;
  }
  __syncthreads();
}

/// All gradients in one pass, for rows that fit in registers: each block takes every gridDim.x-th row or group of rows.
template <class In, int N, int kHeld, bool kCentred, bool kPlain>
__global__ void __launch_bounds__(kBackwardLimits<In, kCentred>.threads) norm_backward(NormBackward p) {
  extern __shared__ float shared[];
  __shared__ float2 scratch[2][kReduceScratch];
  BlockSums<float2> sum_of_block(scratch);
  const int hidden = static_cast<int>(p.hidden);
  float dgamma[kHeld][N] = {};
  float dbeta[kHeld][N] = {};
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.y;
  for (std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < p.rows; row += step) {
    const RowPart<In, N, kHeld, kPlain> x(p.x.data, row, hidden);
    const RowPart<In, N, kHeld, kPlain> dz(p.dz.data, row, hidden);
    const auto gradient =
        row_gradient<In, N, kCentred, kPlain>(p, saved_statistics<kCentred>(p, row), x, dz, sum_of_block);
    const auto add_up = [&](int g, int i, float dz_value, float xh) {
      dgamma[g][i] += dz_value * xh;
      if (kCentred) {
        dbeta[g][i] += dz_value;
      }
    };
    store_input_gradient<In, N, kCentred, kPlain>(p, row, gradient, x, dz, add_up);
  }
  store_partial(dgamma, shared, partial_row(p, blockIdx.x, gridDim.x, false), hidden);
  if (kCentred) {
    store_partial(dbeta, shared, partial_row(p, blockIdx.x, gridDim.x, true), hidden);
  }
}

/// dx alone, for rows of any length: one block per row, which reads the row twice.
template <class In, int N, bool kCentred>
__global__ void __launch_bounds__(kBackwardLimits<In, kCentred>.threads) norm_backward_rows(NormBackward p) {
  __shared__ float2 scratch[2][kReduceScratch];
  BlockSums<float2> sum_of_block(scratch);
  const std::int64_t row = blockIdx.x;
  const RowPart<In, N, 0> x(p.x.data, row, static_cast<int>(p.hidden));
  const RowPart<In, N, 0> dz(p.dz.data, row, static_cast<int>(p.hidden));
  const auto gradient =
      row_gradient<In, N, kCentred, false>(p, saved_statistics<kCentred>(p, row), x, dz, sum_of_block);
  store_input_gradient<In, N, kCentred, false>(p, row, gradient, x, dz, [](int, int, float, float) {});
}

/// Sums `value` over threadIdx.y, in order; only threads with y = 0 get the result.
__device__ __forceinline__ float sum_of_rows(float value, float (&shared)[kRowsAtOnce][kColumnsPerBlock]) {
  shared[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  float total = 0.0f;
  if (threadIdx.y == 0) {
    for (int y = 0; y < kRowsAtOnce; ++y) {
      total += shared[y][threadIdx.x];
    }
  }
  __syncthreads();
  return total;
}

/// Partial sums of dgamma and dbeta: block (column tile, s) takes the s-th of gridDim.y equal ranges of rows.
template <class In, bool kCentred>
__global__ void norm_backward_columns(NormBackward p) {
  __shared__ float shared[kRowsAtOnce][kColumnsPerBlock];
  const std::int64_t column = std::int64_t{blockIdx.x} * kColumnsPerBlock + threadIdx.x;
  const std::int64_t share = (p.rows + gridDim.y - 1) / gridDim.y;
  const std::int64_t end = (blockIdx.y + 1) * share < p.rows ? (blockIdx.y + 1) * share : p.rows;
  float dgamma = 0.0f;
  float dbeta = 0.0f;
  if (column < p.hidden) {
    for (std::int64_t row = blockIdx.y * share + threadIdx.y; row < end; row += kRowsAtOnce) {
      const std::int64_t at = row * p.hidden + column;
      const RowGradient<kCentred> saved = {kCentred ? p.mu[row] : 0.0f, p.rsigma[row], 0.0f, 0.0f};
      const float dz = to_float(static_cast<const In*>(p.dz.data)[at]);
      dgamma += dz * saved.normalised(to_float(static_cast<const In*>(p.x.data)[at]));
      dbeta += dz;
    }
  }
  const float gamma_total = sum_of_rows(dgamma, shared);
  const float beta_total = sum_of_rows(dbeta, shared);
  if (threadIdx.y == 0 && column < p.hidden) {
    partial_row(p, blockIdx.y, gridDim.y, false)[column] = gamma_total;
    if (kCentred) {
      partial_row(p, blockIdx.y, gridDim.y, true)[column] = beta_total;
    }
  }
}

/// dgamma (blockIdx.y = 0) and dbeta (1) from the partial sums of `blocks` blocks.
template <class In>
__global__ void norm_backward_finish(NormBackward p, std::int64_t blocks) {
  __shared__ float shared[kRowsAtOnce][kColumnsPerBlock];
  const bool beta = blockIdx.y == 1;
  const std::int64_t column = std::int64_t{blockIdx.x} * kColumnsPerBlock + threadIdx.x;
  float sum = 0.0f;
  if (column < p.hidden) {
#pragma unroll 4
    for (std::int64_t block = threadIdx.y; block < blocks; block += kRowsAtOnce) {
      sum += partial_row(p, block, blocks, beta)[column];
    }
  }
  const float total = sum_of_rows(sum, shared);
  if (threadIdx.y == 0 && column < p.hidden) {
    static_cast<In*>(beta ? p.dbeta.data : p.dgamma.data)[column] = from_float<In>(total);
  }
}

}  // namespace numcheck::kernels::cuda
