#include "kernels/cuda/softmax_kernel.hpp"
#include "kernels/cuda/softmax_team.cuh"

namespace numcheck::kernels::cuda {
namespace {

__device__ __forceinline__ std::int64_t columns_of_row(const SoftmaxBackward& op, std::int64_t row) {
  return op.shape.diagonal == Diagonal::none ? op.shape.sk : columns_of(op.shape, row % op.shape.sq);
}

__device__ __forceinline__ float gradient(const SoftmaxBackward& op, float dy, float y, float sum) {
  return __fmul_rn(op.scale, __fsub_rn(__fmul_rn(dy, y), __fmul_rn(y, sum)));
}

/// A row in the registers of a team: element k of group g of a thread is column (g size + index) N + k.
template <class T, int kGroups, bool whole, class Team>
__device__ void held_row(const SoftmaxBackward& op, std::int64_t row, const Team& team) {
  constexpr int N = kPerAccess<T>;
  const int columns = static_cast<int>(columns_of_row(op, row));
  const int sk = static_cast<int>(op.shape.sk);
  const std::int64_t at = row * op.shape.sk;
  const T zero = from_float<T>(0.0f);
  Vec<T, N> dy[kGroups];
  Vec<T, N> y[kGroups];
  float sum = 0;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const int first = (g * team.size() + team.index()) * N;
    const int count = columns - first;
    if (count > 0) {
      dy[g] = load_some<whole, T, N>(static_cast<const T*>(op.dy.data) + at + first, count, zero);
      y[g] = load_some<whole, T, N>(static_cast<const T*>(op.y.data) + at + first, count, zero);
    }
#pragma unroll
    for (int k = 0; k < N; ++k) {
      sum += k < count ? __fmul_rn(to_float(dy[g].at[k]), to_float(y[g].at[k])) : 0.0f;
    }
  }
  sum = team.sum(sum);
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const int first = (g * team.size() + team.index()) * N;
    Vec<T, N> out;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const bool counts = first + k < columns;
      out.at[k] = counts ? from_float<T>(gradient(op, to_float(dy[g].at[k]), to_float(y[g].at[k]), sum)) : zero;
    }
    if (first < sk) {
      store_some<whole, T, N>(out, static_cast<T*>(op.dx.data) + at + first, sk - first);
    }
  }
}

template <class T, int kGroups, bool whole>
__global__ void __launch_bounds__(kWarpsPerBlock* kWarp) warp_rows(SoftmaxBackward op) {
  const WarpTeam team;
  if (team.row() < op.shape.matrices * op.shape.sq) {
    held_row<T, kGroups, whole>(op, team.row(), team);
  }
}

template <class T, int kGroups, bool whole>
__global__ void __launch_bounds__(kMaxThreads) block_rows(SoftmaxBackward op) {
  __shared__ float scratch[kReduceScratch];
  const BlockTeam team{scratch};
  held_row<T, kGroups, whole>(op, team.row(), team);
}

/// Rows too long for a block's registers: two passes, the same arithmetic per element.
template <class T>
__global__ void __launch_bounds__(kMaxThreads) streamed_rows(SoftmaxBackward op) {
  __shared__ float scratch[kReduceScratch];
  const BlockTeam team{scratch};
  const std::int64_t row = team.row();
  const std::int64_t columns = columns_of_row(op, row);
  const T* dy = static_cast<const T*>(op.dy.data) + row * op.shape.sk;
  const T* y = static_cast<const T*>(op.y.data) + row * op.shape.sk;
  T* dx = static_cast<T*>(op.dx.data) + row * op.shape.sk;
  float sum = 0;
  for (std::int64_t j = team.index(); j < columns; j += team.size()) {
    sum += __fmul_rn(to_float(dy[j]), to_float(y[j]));
  }
  sum = team.sum(sum);
  for (std::int64_t j = team.index(); j < op.shape.sk; j += team.size()) {
    dx[j] = from_float<T>(j < columns ? gradient(op, to_float(dy[j]), to_float(y[j]), sum) : 0.0f);
  }
}

template <class T, int kGroups, bool whole>
void run_warps(const SoftmaxBackward& op, cudaStream_t stream) {
  const unsigned blocks = blocks_for_rows(op.shape.matrices * op.shape.sq, kWarpsPerBlock);
  warp_rows<T, kGroups, whole><<<blocks, kWarpsPerBlock * kWarp, 0, stream>>>(op);
}

template <class T, int kGroups, bool whole>
void run_blocks(const SoftmaxBackward& op, cudaStream_t stream) {
  const int threads = threads_for(op.shape.sk, kGroups * kPerAccess<T>);
  block_rows<T, kGroups, whole><<<blocks_for_rows(op.shape.matrices * op.shape.sq, 1), threads, 0, stream>>>(op);
}

template <class T, bool whole>
void run_held(const SoftmaxBackward& op, cudaStream_t stream) {
  constexpr int kColumns = kWarp * kPerAccess<T>;  // per group of a warp
  const std::int64_t sk = op.shape.sk;
  if (sk <= kColumns) {
    run_warps<T, 1, whole>(op, stream);
  } else if (sk <= 2 * kColumns) {
    run_warps<T, 2, whole>(op, stream);
  } else if (sk <= 4 * kColumns) {
    run_warps<T, 4, whole>(op, stream);
  } else if (sk <= 2 * kPerAccess<T> * kMaxThreads) {
    run_blocks<T, 2, whole>(op, stream);
  } else {
    run_blocks<T, 4, whole>(op, stream);
  }
}

template <class T>
void run(const SoftmaxBackward& op, cudaStream_t stream) {
  constexpr int N = kPerAccess<T>;
  const std::int64_t sk = op.shape.sk;
  if (sk > 4 * N * kMaxThreads) {
    streamed_rows<T><<<blocks_for_rows(op.shape.matrices * op.shape.sq, 1), kMaxThreads, 0, stream>>>(op);
  } else if (can_vectorise<T, N>(op.dy.data, sk, sk) && can_vectorise<T, N>(op.y.data, sk, sk) &&
             can_vectorise<T, N>(op.dx.data, sk, sk)) {
    run_held<T, true>(op, stream);
  } else {
    run_held<T, false>(op, stream);
  }
}

}  // namespace

cudaError_t launch_softmax_bwd(const SoftmaxBackward& launch, cudaStream_t stream) {
  if (launch.shape.matrices * launch.shape.sq == 0) {
    return cudaSuccess;
  }
  if (launch.shape.matrices * launch.shape.sq > kMaxRows) {
    return cudaErrorInvalidConfiguration;
  }
  return visit_wide_storage(launch.dy.storage, [&](auto type) {
    run<typename decltype(type)::type>(launch, stream);
    return cudaGetLastError();
  });
}

}  // namespace numcheck::kernels::cuda
