// What the kernels of the row normalisations share: gamma, and a row in registers.
#pragma once

#include "kernels/cuda/element_group.cuh"
#include "kernels/cuda/norm_kernel.hpp"

namespace numcheck::kernels::cuda {

/// gamma' of one column.
template <class In>
__device__ __forceinline__ float gamma_factor(In gamma, GammaRule rule) {
  const float value = to_float(gamma);
  if (rule == GammaRule::plain) {
    return value;
  }
  const float centred = value + 1.0f;
  return rule == GammaRule::centred ? centred : rounded_through<In>(centred);
}

/// The elements of a row that this thread of blockDim.x works on: groups of N consecutive ones, adjacent groups in
/// adjacent threads. Where N > 1 the row is a whole number of groups. kHeld groups stay in registers after one read;
/// with kHeld = 0 every pass reads them again. kFull: the held groups of all threads make up the row, so that none
/// needs a bounds check.
template <class In, int N, int kHeld, bool kFull = false>
class RowPart {
 public:
  __device__ __forceinline__ RowPart(const void* matrix, std::int64_t row, int hidden)
      : row_(static_cast<const In*>(matrix) + row * hidden), hidden_(hidden) {
#pragma unroll
    for (int g = 0; g < kHeld; ++g) {
      if (has(g)) {
        held_[g] = Vec<In, N>::load(row_ + column(g));
      }
    }
  }

  /// visit(group, first column, elements, the other matrix's elements) for the same row of two matrices.
  template <class Visit>
  __device__ __forceinline__ void with(const RowPart& other, const Visit& visit) const {
    if constexpr (kHeld > 0) {
#pragma unroll
      for (int g = 0; g < kHeld; ++g) {
        if (has(g)) {
          visit(g, column(g), held_[g], other.held_[g]);
        }
      }
    } else {
      for (int g = 0; has(g); ++g) {
        visit(g, column(g), Vec<In, N>::load(row_ + column(g)), Vec<In, N>::load(other.row_ + column(g)));
      }
    }
  }

  /// visit(first column, elements), in the order of the columns.
  template <class Visit>
  __device__ __forceinline__ void each(const Visit& visit) const {
    with(*this, [&visit](int, int column, const Vec<In, N>& group, const Vec<In, N>&) { visit(column, group); });
  }

 private:
  __device__ __forceinline__ int column(int g) const {
    return (g * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * N;
  }
  __device__ __forceinline__ bool has(int g) const { return kFull || column(g) < hidden_; }

  const In* row_;
  int hidden_;
  Vec<In, N> held_[kHeld > 0 ? kHeld : 1];
};

/// Elements per access.
template <class In>
inline constexpr int kPerAccess = kAccessBytes / static_cast<int>(sizeof(In));

/// Shape of a block: `rows` rows at once, with `threads` threads for each; more than one row only if each has one warp.
struct NormBlock {
  int threads = kWarp;
  int rows = 1;
  int held = 0;  ///< groups in each thread's registers, 0 if the row does not fit there
};

/// Which kernels exist: how many threads a block may have, and how many groups a thread may hold.
struct NormLimits {
  int warp_groups;   ///< most per lane where each row has one warp
  int few_groups;    ///< per thread of a larger block if enough threads can share the row
  int block_groups;  ///< most per thread of a larger block
  int threads;       ///< most threads in a block
};

inline constexpr int kRowsPerBlock = 4;  ///< where each row has one warp

/// The block for rows of `groups` groups: one warp per row, else a block in which each thread holds few groups, else
/// more of them.
inline NormBlock norm_block(std::int64_t groups, const NormLimits& limits) {
  const auto threads_for = [groups](int held) {
    return static_cast<int>((groups + std::int64_t{held} * kWarp - 1) / (std::int64_t{held} * kWarp)) * kWarp;
  };
  for (int held = 1; held <= limits.warp_groups; held *= 2) {
    if (groups <= std::int64_t{held} * kWarp) {
      return {kWarp, kRowsPerBlock, held};
    }
  }
  for (int held = limits.few_groups; held <= limits.block_groups; held *= 2) {
    if (groups <= std::int64_t{held} * limits.threads) {
      return {threads_for(held), 1, held};
    }
  }
  return {limits.threads, 1, 0};
}

}  // namespace numcheck::kernels::cuda
