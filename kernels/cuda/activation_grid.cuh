// How the elements of an activation are divided among threads.
#pragma once

#include <algorithm>

#include "kernels/cuda/activation_kernel.hpp"
#include "kernels/cuda/element_group.cuh"

namespace numcheck::kernels::cuda {

inline constexpr int kActivationThreads = 256;
inline constexpr int kInFlight = 2;  ///< groups that a thread loads before it computes
inline constexpr std::int64_t kGroupsPerBlock = std::int64_t{kActivationThreads} * kInFlight;

/// Lines of `length` elements in groups of N: the rows of a gated op, or all elements as one line.
struct Lines {
  std::int64_t length = 0;
  std::int64_t groups_per_line = 0;
  std::int64_t groups = 0;
  bool aligned = false;  ///< every whole group can be moved in one access

  /// One group of the forward output: line, position in it, elements.
  struct Place {
    std::int64_t line;
    std::int64_t column;
    int count;  ///< 0: there is no such group
    bool whole;
  };

  /// Position in x, in groups, of a whole group of a gated op's first half; the second half is `length` elements on.
  __device__ __forceinline__ std::int64_t gated_group(std::int64_t group) const {
    return group + group / groups_per_line * groups_per_line;
  }

  template <int N>
  __device__ __forceinline__ Place at(std::int64_t group) const {
    if (group >= groups) {
      return {0, 0, 0, false};
    }
    const std::int64_t line = groups_per_line == groups ? 0 : group / groups_per_line;
    const std::int64_t column = (group - line * groups_per_line) * N;
    const int count = length - column < N ? static_cast<int>(length - column) : N;
    return {line, column, count, aligned && count == N};
  }
};

/// The lines of the launch, in groups of `group` elements.
inline Lines lines_of(const ActivationLaunch& p, int group) {
  Lines lines;
  lines.length = p.gated ? p.hidden : p.rows * p.hidden;
  lines.groups_per_line = (lines.length + group - 1) / group;
  lines.groups = lines.groups_per_line * (p.gated ? p.rows : 1);
  lines.aligned = groups_aligned(p.x, group) && groups_aligned(p.out, group) &&
                  (p.dy.data == nullptr || groups_aligned(p.dy, group)) && (!p.gated || p.hidden % group == 0);
  return lines;
}

/// Blocks for a grid-stride loop over the groups.
inline unsigned blocks_of(const Lines& lines) {
  constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 20;
  return static_cast<unsigned>(std::min((lines.groups + kGroupsPerBlock - 1) / kGroupsPerBlock, kMaxBlocks));
}

/// First group of this thread, and the distance to its next ones: those in flight are blockDim apart, so that the
/// threads of a warp read adjacent groups.
__device__ __forceinline__ std::int64_t first_group() {
  return std::int64_t{blockIdx.x} * kActivationThreads * kInFlight + threadIdx.x;
}
__device__ __forceinline__ std::int64_t group_stride() {
  return std::int64_t{gridDim.x} * kActivationThreads * kInFlight;
}

}  // namespace numcheck::kernels::cuda
