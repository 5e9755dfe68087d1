// A tile of 128 x 128 elements, or of 32 x 128, in the registers of a block of threads, and its way to and from memory. A thread has four
// rows of eight columns; sixteen neighbouring lanes share rows, the two halves of a warp and all warps share columns.
#pragma once

#include <type_traits>

#include "kernels/cuda/block_quantize_kernel.hpp"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/reduce.cuh"

namespace numcheck::kernels::cuda {

inline constexpr int kTileSide = 128;
inline constexpr int kTileThreads = 512;
inline constexpr int kTileWarps = kTileThreads / kWarp;
inline constexpr int kTileRows = 4;   // of a thread
inline constexpr int kTileWidth = 8;  // columns of a thread
inline constexpr int kTileLanes = kTileSide / kTileWidth;
inline constexpr int kTurnedWidth = 16;  // codes of one access to a row of transposed ones
inline constexpr int kMxBlock = 32;
inline constexpr int kTileWords = kTileSide / kTileRows;  // words of four codes in a column of the tile

/// Where a thread's elements are.
struct TilePlace {
  int row;  ///< in the tile
  int col;
  std::int64_t first_row;  ///< of the tile
  std::int64_t first_col;
};

template <class In>
struct TilePiece {
  static constexpr int kChunk = kAccessBytes / static_cast<int>(sizeof(In));
  Vec<In, kChunk> chunk[kTileWidth / kChunk];

  __device__ __forceinline__ float operator[](int j) const { return to_float(chunk[j / kChunk].at[j % kChunk]); }
  __device__ __forceinline__ void set(int j, In value) { chunk[j / kChunk].at[j % kChunk] = value; }
};

/// Elements outside x are zeros.
template <class In, bool kVector>
__device__ __forceinline__ void load_tile(const BlockQuantizeLaunch& p, const TilePlace& at,
                                          TilePiece<In> (&piece)[kTileRows]) {
  const auto* x = static_cast<const In*>(p.x.data);
#pragma unroll
  for (int i = 0; i < kTileRows; ++i) {
    const std::int64_t row = at.first_row + at.row + i, col = at.first_col + at.col;
    const In* from = x + row * p.cols + col;
    if constexpr (kVector) {
      const bool inside = row < p.rows && col < p.cols;
#pragma unroll
      for (int k = 0; k < kTileWidth / TilePiece<In>::kChunk; ++k) {
        piece[i].chunk[k] = inside ? Vec<In, TilePiece<In>::kChunk>::load(from + k * TilePiece<In>::kChunk)
                                   : Vec<In, TilePiece<In>::kChunk>{};
      }
    } else {
#pragma unroll
      for (int j = 0; j < kTileWidth; ++j) {
        piece[i].set(j, row < p.rows && col + j < p.cols ? from[j] : from_float<In>(0.0f));
      }
    }
  }
}

/// Two 16-bit elements at a time.
template <class In>
struct Pair;
template <>
struct Pair<__nv_bfloat16> {
  using type = __nv_bfloat162;
};
template <>
struct Pair<__half> {
  using type = __half2;
};

/// The larger of two magnitudes, NaN dropped; of pairs, twice.
__device__ __forceinline__ float larger_magnitude(float a, float b) {
  return fmaxf(fabsf(a), fabsf(b));
}
template <class P>
__device__ __forceinline__ P larger_magnitude(P a, P b) {
  return __hmax2(__habs2(a), __habs2(b));
}

/// max |x| of a row's columns.
template <class In>
__device__ __forceinline__ float row_amax(const TilePiece<In>& x) {
  if constexpr (sizeof(In) == 2) {
    using P = typename Pair<In>::type;
    const auto* pairs = reinterpret_cast<const P*>(x.chunk);
    const P most = larger_magnitude(larger_magnitude(pairs[0], pairs[1]), larger_magnitude(pairs[2], pairs[3]));
    return fmaxf(fmaxf(0.0f, to_float(most.x)), to_float(most.y));
  } else {
    float amax = 0.0f;
#pragma unroll
    for (int j = 0; j < kTileWidth; ++j) {
      amax = fmaxf(amax, fabsf(x[j]));
    }
    return amax;
  }
}

/// Makes the compiler convert 16-bit elements again: as FP32 they take twice the registers, and would be spilled.
template <class In>
__device__ __forceinline__ void forget_converted(TilePiece<In> (&x)[kTileRows]) {
  if constexpr (sizeof(In) == 2) {
#pragma unroll
    for (int i = 0; i < kTileRows; ++i) {
      auto* words = reinterpret_cast<unsigned*>(x[i].chunk);
#pragma unroll
      for (int w = 0; w < kTileWidth / 2; ++w) {
        asm volatile("" : "+r"(words[w]));
      }
    }
  }
}

template <class Out>
__device__ __forceinline__ unsigned code_pair(float first, float second) {
  constexpr auto kKind = std::is_same_v<Out, __nv_fp8_e5m2> ? __NV_E5M2 : __NV_E4M3;
  return __nv_cvt_float2_to_fp8x2(make_float2(first, second), __NV_SATFINITE, kKind);
}

/// Codes of four values, the first in the lowest byte.
template <class Out>
__device__ __forceinline__ unsigned code_word(float a, float b, float c, float d) {
  return code_pair<Out>(a, b) | code_pair<Out>(c, d) << 16;
}

/// At most `count` codes, four per word, in a row of codes.
template <bool kVector, int kWords>
__device__ __forceinline__ void store_codes(void* codes, std::int64_t at, const Vec<unsigned, kWords>& words,
                                            std::int64_t count) {
  auto* to = static_cast<unsigned char*>(codes) + at;
  if constexpr (kVector) {
    if (count > 0) {
      words.store(reinterpret_cast<unsigned*>(to));
    }
  } else {
#pragma unroll
    for (int k = 0; k < 4 * kWords; ++k) {
      if (k < count) {
        to[k] = static_cast<unsigned char>(words.at[k / 4] >> k % 4 * 8);
      }
    }
  }
}

}  // namespace numcheck::kernels::cuda
