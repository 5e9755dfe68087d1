// Products of a block's tile: 64 own positions (rows of the output) by 64 others (which a sum runs over), in FP32 fused
// multiply-adds. Both kinds read rows of heads through shared memory, in stages.
#pragma once

#include "kernels/cuda/attention_band.cuh"
#include "kernels/cuda/element_group.cuh"

namespace numcheck::kernels::cuda {

inline constexpr int kTile = 64;
inline constexpr int kTileThreads = 128;
inline constexpr int kOwnRows = 8;                                   // own positions of a thread
inline constexpr int kOtherRows = 4;                                 // other positions of a thread
inline constexpr int kSharing = kTile / kOtherRows;                  // adjacent threads with the same own positions
inline constexpr int kFour = 4;                                      // elements of one access to shared memory
inline constexpr int kStage = 2048;                                  // floats of a stage
inline constexpr int kDepth = kStage / (2 * kTile);                  // channels of a stage with both sides' rows
inline constexpr int kLoads = kStage / (kFour * kTileThreads);       // groups of four that a thread moves per stage
inline constexpr int kRowsAtOnce = kTileThreads / (kDepth / kFour);  // rows that the block moves at once, of one side

/// Numbers of a thread's part of the tile.
using PerPair = float[kOwnRows][kOtherRows];

/// Shared memory of a block.
struct TileMemory {
  float stages[2][kStage];
  float weights[kTile * kTile];
};

/// A thread's part of the tile.
struct TileThread {
  int lane = static_cast<int>(threadIdx.x) % kSharing;
  int own = static_cast<int>(threadIdx.x) / kSharing * kOwnRows;  ///< first own position
  int other = lane * kOtherRows;                                  ///< first other position
};

/// Stages are filled in turn. One barrier between filling and reading one is enough: who fills it again has passed the
/// barrier of the other stage, before which everyone has read this one.
class Stages {
 public:
  __device__ __forceinline__ explicit Stages(TileMemory& memory) : stages_(memory.stages) {}
  __device__ __forceinline__ float* next() {
    turn_ ^= 1;
    return stages_[turn_];
  }

 private:
  float (*stages_)[kStage];
  int turn_ = 0;
};

/// Of channel 0 of position 0.
__device__ __forceinline__ std::int64_t first_element(const HeadTensor& of, int batch, int head) {
  return (of.starts == nullptr ? batch * of.batch_stride : of.starts[batch] * of.stride) + head * of.head_stride;
}

/// Rows of one head. Those outside `exist` read as zeros.
template <class T>
struct Rows {
  const T* first;
  std::int64_t stride;
  int channels;
  bool aligned;  ///< groups of four channels can be read in one access
  Span exist;

  __device__ __forceinline__ Rows(const HeadTensor& of, int batch, int head, Span positions)
      : first(static_cast<const T*>(of.tensor.data) + first_element(of, batch, head)),
        stride(of.stride),
        channels(of.channels),
        aligned(reinterpret_cast<std::uintptr_t>(first) % alignof(Vec<T, kFour>) == 0 && stride % kFour == 0),
        exist(positions) {}

  /// Four channels of a position; those that do not exist are zero.
  __device__ __forceinline__ Group<kFour> four(int position, int channel) const {
    const int count = channels - channel;
    if (position < exist.begin || position >= exist.end || count <= 0) {
      return {};
    }
    return load_group<kFour>(first + position * stride + channel, count, aligned && count >= kFour);
  }
};

__device__ __forceinline__ float4 four_at(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}

/// In a stage, the rows of channel c are swapped by eights, so that the threads of a warp, which store four channels of
/// eight rows, use different banks.
__device__ __forceinline__ constexpr int swapped(int row, int channel) {
  return row ^ (channel / kFour * 8);
}

/// One side of a stage on its way from memory to shared memory: kDepth channels of kTile positions.
template <class T>
struct Side {
  Group<kFour> part[kLoads / 2];

  __device__ __forceinline__ void load(const Rows<T>& rows, int first, int channel) {
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int n = 0; n < kLoads / 2; ++n) {
      part[n] =
          rows.four(first + n * kRowsAtOnce + thread / (kDepth / kFour), channel + thread % (kDepth / kFour) * kFour);
    }
  }

  __device__ __forceinline__ void store(float* stage) const {
    const int thread = static_cast<int>(threadIdx.x);
    const int channel = thread % (kDepth / kFour) * kFour;
#pragma unroll
    for (int n = 0; n < kLoads / 2; ++n) {
      const int row = swapped(n * kRowsAtOnce + thread / (kDepth / kFour), channel);
#pragma unroll
      for (int c = 0; c < kFour; ++c) {
        stage[(channel + c) * kTile + row] = part[n].at[c];
      }
    }
  }
};

/// out[r][c] = sum over channels of own row (first_own + thread.own + r) times other row (first_other + thread.other
/// + c), a chain in order of the channels. All threads of the block take part. `kUnrolled` channels follow each other without
/// a jump: fewer leave more registers for the rest of the kernel.
template <int kUnrolled = kDepth, class T>
__device__ __forceinline__ void multiply_rows(const Rows<T>& own, int first_own, const Rows<T>& other, int first_other,
                                              Stages& stages, PerPair& out) {
  const TileThread thread;
#pragma unroll
  for (int r = 0; r < kOwnRows; ++r) {
#pragma unroll
    for (int c = 0; c < kOtherRows; ++c) {
      out[r][c] = 0;
    }
  }
  Side<T> left, right;
  left.load(own, first_own, 0);
  right.load(other, first_other, 0);
  for (int channel = 0; channel < own.channels; channel += kDepth) {
    float* const stage = stages.next();
    left.store(stage);
    right.store(stage + kDepth * kTile);
    __syncthreads();
    if (channel + kDepth < own.channels) {  // on their way while this stage is multiplied
      left.load(own, first_own, channel + kDepth);
      right.load(other, first_other, channel + kDepth);
    }
#pragma unroll kUnrolled
    for (int k = 0; k < kDepth; ++k) {
      const float* const x = stage + k * kTile + swapped(thread.own, k);
      const float4 x0 = four_at(x), x1 = four_at(x + kFour);
      const float4 y = four_at(stage + (kDepth + k) * kTile + swapped(thread.other, k));
      const float xs[kOwnRows] = {x0.x, x0.y, x0.z, x0.w, x1.x, x1.y, x1.z, x1.w};
      const float ys[kOtherRows] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int r = 0; r < kOwnRows; ++r) {
#pragma unroll
        for (int c = 0; c < kOtherRows; ++c) {
          out[r][c] = fmaf(xs[r], ys[c], out[r][c]);
        }
      }
    }
  }
}

/// Where the weights of four own positions with one other position are, so that threads that store and threads that
/// read use different banks.
__device__ __forceinline__ int weights_at(int own, int other) {
  return other * kTile + ((own / kFour) ^ (other / kFour)) * kFour;
}

/// Puts a thread's weights where add_weighted reads them; a barrier must follow, which add_weighted has.
__device__ __forceinline__ void store_weights(float* weights, const PerPair& values) {
  const TileThread thread;
#pragma unroll
  for (int c = 0; c < kOtherRows; ++c) {
#pragma unroll
    for (int r = 0; r < kOwnRows; r += kFour) {
      *reinterpret_cast<float4*>(weights + weights_at(thread.own + r, thread.other + c)) =
          make_float4(values[r][c], values[r + 1][c], values[r + 2][c], values[r + 3][c]);
    }
  }
}

/// What the same thread has put there.
__device__ __forceinline__ void load_weights(const float* weights, PerPair& values) {
  const TileThread thread;
#pragma unroll
  for (int c = 0; c < kOtherRows; ++c) {
#pragma unroll
    for (int r = 0; r < kOwnRows; r += kFour) {
      const float4 w = four_at(weights + weights_at(thread.own + r, thread.other + c));
      values[r][c] = w.x;
      values[r + 1][c] = w.y;
      values[r + 2][c] = w.z;
      values[r + 3][c] = w.w;
    }
  }
}

/// The channels of a thread: groups of four, 64 apart, starting at 4 lane. Sums of its own positions.
template <int kChannels>
using PerChannel = float[kOwnRows][kChannels / kSharing];

/// The first channel of a thread's n-th group of four.
__device__ __forceinline__ int channel_of(int lane, int group) {
  return lane * kFour + group * kSharing * kFour;
}

/// Where a block is: its own positions start at `own`, the others at `other`. `whole`: each sees each.
struct TileAt {
  int own;
  int other;
  bool whole;

  __device__ __forceinline__ TileAt(const Band& band, int first_own, int first_other)
      : own(first_own), other(first_other), whole(band.is_whole(first_own, first_other, kTile)) {
    // Makes `own` look different in every tile: otherwise the compiler computes before the loop over tiles whatever
    // depends on a thread's positions alone, which is more than there are registers for.
    asm volatile("" : "+r"(own));
  }
};

/// Adds the products of the weights and channels of position `first` + k, which is the stage's k-th. `sees(r)`: whether
/// the thread's r-th own position counts.
template <int kChannels, class Sees>
__device__ __forceinline__ void add_position(const float* weights, const float* stage, int first, int k,
                                             const Sees& sees, PerChannel<kChannels>& sums) {
  const TileThread thread;
  // weights_at(thread.own, first + k), in a form of which little depends on k: `first` is a multiple of 8.
  const int four = (thread.own / kFour) ^ (first / kFour);
  const float* const row = weights + (first + k) * kTile;
  const float4 w0 = four_at(row + (four ^ (k / kFour)) * kFour);
  const float4 w1 = four_at(row + (four ^ (k / kFour) ^ 1) * kFour);
  const float w[kOwnRows] = {w0.x, w0.y, w0.z, w0.w, w1.x, w1.y, w1.z, w1.w};
#pragma unroll
  for (int g = 0; g < kChannels / kSharing / kFour; ++g) {
    const float4 v = four_at(stage + k * kChannels + channel_of(thread.lane, g));
    const float vs[kFour] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r) {
#pragma unroll
      for (int c = 0; c < kFour; ++c) {
        if (sees(r)) {
          sums[r][g * kFour + c] = fmaf(w[r], vs[c], sums[r][g * kFour + c]);
        }
      }
    }
  }
}

/// sums[r][.] += sum over the tile's other positions of weight times channels [first_channel, first_channel +
/// kChannels) of their rows, in order of the positions; `rows.exist` are those that any own position sees. If a
/// position that not every own position sees holds NaN or infinity, only products of those that see it are added. All
/// threads of the block take part, after store_weights. `kUnrolled` positions follow each other without a jump.
template <int kChannels, int kUnrolled = kStage / kChannels, class T>
__device__ __forceinline__ void add_weighted(const float* weights, const Rows<T>& rows, int first_channel,
                                             const Band& band, const TileAt& at, Stages& stages,
                                             PerChannel<kChannels>& sums) {
  constexpr int kPositions = kStage / kChannels;
  constexpr int kGroups = kChannels / kFour;
  const TileThread thread;
  Group<kFour> part[kLoads];
  const auto load = [&](int position) {
#pragma unroll
    for (int n = 0; n < kLoads; ++n) {
      const int index = n * kTileThreads + static_cast<int>(threadIdx.x);
      part[n] = rows.four(at.other + position + index / kGroups, first_channel + index % kGroups * kFour);
    }
  };
  const int end = smaller(rows.exist.end - at.other, kTile);
  load(0);
  for (int position = 0; position < end; position += kPositions) {
    float* const stage = stages.next();
    bool is_finite = true;
#pragma unroll
    for (int n = 0; n < kLoads; ++n) {
      const Group<kFour>& p = part[n];
      *reinterpret_cast<float4*>(stage + (n * kTileThreads + static_cast<int>(threadIdx.x)) * kFour) =
          make_float4(p.at[0], p.at[1], p.at[2], p.at[3]);
      if (!at.whole) {
#pragma unroll
        for (int c = 0; c < kFour; ++c) {
          is_finite = is_finite && isfinite(p.at[c]);
        }
      }
    }
    const bool careful = __syncthreads_or(!is_finite) != 0;
    if (position + kPositions < end) {
      load(position + kPositions);
    }
    if (careful) {
#pragma unroll 1
      for (int k = 0; k < kPositions; ++k) {
        add_position<kChannels>(
            weights, stage, position, k,
            [&](int r) { return band.sees(at.own + thread.own + r, at.other + position + k); }, sums);
      }
    } else {
#pragma unroll kUnrolled
      for (int k = 0; k < kPositions; ++k) {
        add_position<kChannels>(weights, stage, position, k, [](int) { return true; }, sums);
      }
    }
  }
}

/// Stores a block's sums as channels of its own positions [first, first + kTile); those from `length` on, if the tensor
/// has them, are zeros.
template <int kChannels, class T>
__device__ __forceinline__ void store_rows(const HeadTensor& to, int batch, int head, int first, int first_channel,
                                           int length, const PerChannel<kChannels>& sums) {
  const TileThread thread;
  const Rows<T> rows(to, batch, head, {0, to.positions});
  T* const data = static_cast<T*>(to.tensor.data) + first_element(to, batch, head);
  const int positions = to.starts == nullptr ? to.positions : length;
#pragma unroll
  for (int r = 0; r < kOwnRows; ++r) {
    const int position = first + thread.own + r;
#pragma unroll
    for (int g = 0; g < kChannels / kSharing / kFour; ++g) {
      const int channel = first_channel + channel_of(thread.lane, g);
      const int count = to.channels - channel;
      if (position < positions && count > 0) {
        Group<kFour> group;
#pragma unroll
        for (int c = 0; c < kFour; ++c) {
          group.at[c] = position < length ? sums[r][g * kFour + c] : 0.0f;
        }
        store_as(data + position * to.stride + channel, group, count, rows.aligned && count >= kFour);
      }
    }
  }
}

}  // namespace numcheck::kernels::cuda
