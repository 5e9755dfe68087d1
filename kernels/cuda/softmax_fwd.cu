#include "kernels/cuda/softmax_kernel.hpp"
#include "kernels/cuda/softmax_team.cuh"

namespace numcheck::kernels::cuda {
namespace {

/// What applies to one row.
struct Row {
  std::int64_t columns;  ///< up to the diagonal
  float padding;         ///< elements beyond the diagonal that hold masked_score
  const std::uint8_t* mask;
};

__device__ __forceinline__ Row whole_row(const SoftmaxForward& op) {
  return {op.shape.sk, 0.0f, nullptr};
}

__device__ __forceinline__ Row row_of(const SoftmaxForward& op, std::int64_t row) {
  Row out = whole_row(op);
  if (op.mask == nullptr && op.shape.diagonal == Diagonal::none) {
    return out;
  }
  const std::int64_t matrix = row / op.shape.sq;
  const std::int64_t i = row - matrix * op.shape.sq;
  out.columns = columns_of(op.shape, i);
  out.padding = op.lanes > 0 ? static_cast<float>(op.lanes - out.columns) : 0.0f;
  out.mask = op.mask == nullptr ? nullptr : op.mask + (matrix / op.heads * op.shape.sq + i) * op.shape.sk;
  return out;
}

__device__ __forceinline__ float score(const SoftmaxForward& op, float x, bool masked) {
  return masked ? op.masked_score : __fmul_rn(x, op.scale);
}

/// What is subtracted from the scores, and the factor 1 / sum.
struct Normaliser {
  bool masked;  ///< all scores of the row are masked
  float shift;

  __device__ Normaliser(const SoftmaxForward& op, float largest)
      : masked(op.masked_row_is_zero && largest == op.masked_score), shift(masked ? 0.0f : largest) {}

  __device__ float exponential(float t) const { return expf(__fsub_rn(t, shift)); }

  /// `sum`: of the row's own exponentials.
  __device__ float factor(const SoftmaxForward& op, const Row& row, float sum) const {
    const float total = row.padding > 0 ? sum + row.padding * exponential(op.masked_score) : sum;
    return masked && !isnan(total) ? 0.0f : __fdiv_rn(1.0f, total);
  }
};

__device__ __forceinline__ float initial_maximum(const SoftmaxForward& op, const Row& row) {
  return row.padding > 0 ? op.masked_score : -INFINITY;
}

/// What is known about the rows at compile time.
enum class Rows {
  full,   ///< plain, and the groups of a warp's lanes make up the row
  plain,  ///< whole, with no mask and no diagonal
  whole,  ///< groups of elements are aligned for a single access
  ragged,
};

/// A row in the registers of a team: element k of group g of a thread is column (g size + index) N + k.
template <class T, int kGroups, Rows rows, class Team>
__device__ void held_row(const SoftmaxForward& op, const Row& row, const T* x, T* y, const Team& team) {
  constexpr int N = kPerAccess<T>;
  constexpr bool whole = rows != Rows::ragged;
  constexpr bool plain = rows <= Rows::plain;  // then every group is entirely inside or outside the row
  const int sk = rows == Rows::full ? kGroups * kWarp * N : static_cast<int>(op.shape.sk);
  const int columns = rows == Rows::full ? sk : static_cast<int>(row.columns);
  Vec<T, N> in[kGroups];
  // All loads before the first use, so that they are in flight together.
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const int first = (g * team.size() + team.index()) * N;
    if (first < columns) {
      in[g] = load_some<whole, T, N>(x + first, columns - first, T{});
    }
  }
  float t[kGroups][N];
  float largest = initial_maximum(op, row);
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const int first = (g * team.size() + team.index()) * N;
    const int count = columns - first;
    Vec<std::uint8_t, N> masked;
    if (!plain && row.mask != nullptr && count > 0) {
      masked = load_some<whole, std::uint8_t, N>(row.mask + first, count, std::uint8_t{0});
    }
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const bool counts = plain ? count > 0 : k < count;
      const bool hidden = !plain && row.mask != nullptr && masked.at[k] == 1;
      t[g][k] = counts ? score(op, to_float(in[g].at[k]), hidden) : -INFINITY;
      largest = fmaxf(largest, t[g][k]);
    }
  }
  const Normaliser normaliser(op, team.max(largest));
  float sum = 0;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      t[g][k] = normaliser.exponential(t[g][k]);
      sum += t[g][k];
    }
  }
  const float factor = normaliser.factor(op, row, team.sum(sum));
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const int first = (g * team.size() + team.index()) * N;
    float out[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      out[k] = plain || first + k < columns ? t[g][k] * factor : 0.0f;
    }
    if (first < sk) {
      store_some<whole, T, N>(rounded_vec<T>(out), y + first, sk - first);
    }
  }
}

/// Six resident blocks, which leaves a thread 80 registers: more rows in flight hide more of the memory latency.
template <class T, int kGroups, Rows rows>
__global__ void __launch_bounds__(kWarpsPerBlock* kWarp, rows <= Rows::plain ? 6 : 1) warp_rows(SoftmaxForward op) {
  const WarpTeam team;
  const std::int64_t row = team.row();
  if (row < op.shape.matrices * op.shape.sq) {
    const std::int64_t at = row * op.shape.sk;
    const Row place = rows <= Rows::plain ? whole_row(op) : row_of(op, row);
    held_row<T, kGroups, rows>(op, place, static_cast<const T*>(op.x.data) + at, static_cast<T*>(op.y.data) + at, team);
  }
}

template <class T, int kGroups, Rows rows>
__global__ void __launch_bounds__(kMaxThreads) block_rows(SoftmaxForward op) {
  __shared__ float scratch[kReduceScratch];
  const BlockTeam team{scratch};
  const std::int64_t row = team.row();
  const std::int64_t at = row * op.shape.sk;
  const Row place = rows <= Rows::plain ? whole_row(op) : row_of(op, row);
  held_row<T, kGroups, rows>(op, place, static_cast<const T*>(op.x.data) + at, static_cast<T*>(op.y.data) + at, team);
}

/// Rows too long for a block's registers: three passes, the same arithmetic per element.
template <class T>
__global__ void __launch_bounds__(kMaxThreads) streamed_rows(SoftmaxForward op) {
  __shared__ float scratch[kReduceScratch];
  const BlockTeam team{scratch};
  const std::int64_t index = team.row();
  const Row row = row_of(op, index);
  const T* x = static_cast<const T*>(op.x.data) + index * op.shape.sk;
  T* y = static_cast<T*>(op.y.data) + index * op.shape.sk;
  const auto score_at = [&](std::int64_t j) {
    return score(op, to_float(x[j]), row.mask != nullptr && row.mask[j] == 1);
  };
  float largest = initial_maximum(op, row);
  for (std::int64_t j = team.index(); j < row.columns; j += team.size()) {
    largest = fmaxf(largest, score_at(j));
  }
  const Normaliser normaliser(op, team.max(largest));
  float sum = 0;
  for (std::int64_t j = team.index(); j < row.columns; j += team.size()) {
    sum += normaliser.exponential(score_at(j));
  }
  const float factor = normaliser.factor(op, row, team.sum(sum));
  for (std::int64_t j = team.index(); j < op.shape.sk; j += team.size()) {
    y[j] = from_float<T>(j < row.columns ? normaliser.exponential(score_at(j)) * factor : 0.0f);
  }
}

template <class T, int kGroups, Rows rows>
void run_warps(const SoftmaxForward& op, cudaStream_t stream) {
  const unsigned blocks = blocks_for_rows(op.shape.matrices * op.shape.sq, kWarpsPerBlock);
  if (rows == Rows::plain && op.shape.sk == std::int64_t{kGroups} * kWarp * kPerAccess<T>) {
    warp_rows<T, kGroups, Rows::full><<<blocks, kWarpsPerBlock * kWarp, 0, stream>>>(op);
  } else {
    warp_rows<T, kGroups, rows><<<blocks, kWarpsPerBlock * kWarp, 0, stream>>>(op);
  }
}

template <class T, int kGroups, Rows rows>
void run_blocks(const SoftmaxForward& op, cudaStream_t stream) {
  const int threads = threads_for(op.shape.sk, kGroups * kPerAccess<T>);
  block_rows<T, kGroups, rows><<<blocks_for_rows(op.shape.matrices * op.shape.sq, 1), threads, 0, stream>>>(op);
}

template <class T, Rows rows>
void run_held(const SoftmaxForward& op, cudaStream_t stream) {
  constexpr int kColumns = kWarp * kPerAccess<T>;  // per group of a warp
  constexpr int kFew = 16 / kPerAccess<T>;         // groups of 16 elements
  const std::int64_t sk = op.shape.sk;
  if (sk <= kColumns) {
    run_warps<T, 1, rows>(op, stream);
  } else if (sk <= 2 * kColumns && 2 * kColumns <= kMaxWarpColumns) {
    run_warps<T, 2, rows>(op, stream);
  } else if (sk <= kMaxWarpColumns) {
    run_warps<T, kMaxWarpColumns / kColumns, rows>(op, stream);
  } else if (sizeof(T) == 2 && rows == Rows::plain && sk <= 1024) {
    run_warps<T, 4, rows>(op, stream);
  } else if (sk <= 16 * kMaxThreads) {
    run_blocks<T, kFew, rows>(op, stream);
  } else {
    run_blocks<T, 2 * kFew, rows>(op, stream);
  }
}

template <class T>
void run(const SoftmaxForward& op, cudaStream_t stream) {
  constexpr int N = kPerAccess<T>;
  const std::int64_t sk = op.shape.sk;
  if (sk > 32 * kMaxThreads) {
    streamed_rows<T><<<blocks_for_rows(op.shape.matrices * op.shape.sq, 1), kMaxThreads, 0, stream>>>(op);
  } else if (can_vectorise<T, N>(op.x.data, sk, sk) && can_vectorise<T, N>(op.y.data, sk, sk) &&
             can_vectorise<std::uint8_t, N>(op.mask, sk, sk)) {
    if (op.mask == nullptr && op.shape.diagonal == Diagonal::none) {
      run_held<T, Rows::plain>(op, stream);
    } else {
      run_held<T, Rows::whole>(op, stream);
    }
  } else {
    run_held<T, Rows::ragged>(op, stream);
  }
}

}  // namespace

cudaError_t launch_softmax_fwd(const SoftmaxForward& launch, cudaStream_t stream) {
  if (launch.shape.matrices * launch.shape.sq == 0) {
    return cudaSuccess;
  }
  if (launch.shape.matrices * launch.shape.sq > kMaxRows) {
    return cudaErrorInvalidConfiguration;
  }
  return visit_wide_storage(launch.x.storage, [&](auto type) {
    run<typename decltype(type)::type>(launch, stream);
    return cudaGetLastError();
  });
}

}  // namespace numcheck::kernels::cuda
