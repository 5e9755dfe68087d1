// Sixteen threads have a tile of 16 x 16 elements, each a row of it. Along columns they exchange it in shared memory.
#include <algorithm>

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/nvfp4_kernel.hpp"
#include "kernels/cuda/philox.cuh"
#include "kernels/cuda/reduce.cuh"

namespace numcheck::kernels::cuda {
namespace {

constexpr int kBlock = 16;
constexpr int kThreads = 256;
constexpr int kTiles = kThreads / kBlock;  // of a block of threads
constexpr int kMaxBlocks = 1 << 16;
constexpr float kLargest = 448.0f * 6.0f;
constexpr float kMost = 3.402823466e38f;

/// Of rows in shared memory: columns then lie in different banks.
constexpr int kPitch = kBlock + 1;

/// An E2M1 code, to nearest even; +6 for NaN. The numbers are 0, 0.5, 1, 1.5, 2, 3, 4 and 6, and what lies halfway between
/// two of them goes to the one whose code is even.
__device__ __forceinline__ unsigned e2m1_code(float x) {
  constexpr unsigned kMostCode = 7, kSign = 8;
  if (isnan(x)) {
    return kMostCode;
  }
  const float a = fabsf(x);
  const unsigned code = (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) + (a >= 3.5f) + (a > 5.0f);
  return code | (signbit(x) ? kSign : 0);
}

/// The same with eight random bits: what is missing to the next number is there with the probability floor(256 f) / 256.
__device__ __forceinline__ unsigned drawn_e2m1_code(float x, unsigned bits) {
  constexpr unsigned kMostCode = 7, kSign = 8;
  constexpr float kLargestCode = 6.0f;
  if (isnan(x)) {
    return kMostCode;
  }
  const float a = fminf(fabsf(x), kLargestCode);
  const float step = a >= 4.0f ? 2.0f : a >= 2.0f ? 1.0f : 0.5f;
  const float steps = floorf(__fdiv_rn(a, step));
  const float missing = __fmul_rn(256.0f, __fdiv_rn(a, step) - steps);
  const unsigned up = static_cast<unsigned>(missing) + bits >= 256;
  const unsigned below = a >= 4.0f ? 4 : a >= 2.0f ? 2 : 0;  // codes of 2, 3 and 4, 6 follow those of 0 to 1.5
  return (below + static_cast<unsigned>(steps) + up) | (signbit(x) ? kSign : 0);
}

/// Sixteen bytes of random bits for a block.
struct Draws {
  uint4 bits;
  __device__ __forceinline__ unsigned byte(int k) const {
    const unsigned word = k < 4 ? bits.x : k < 8 ? bits.y : k < 12 ? bits.z : bits.w;
    return word >> k % 4 * 8 & 255;
  }
};

__device__ __forceinline__ float e2m1_number(unsigned code) {
  const unsigned exponent = code >> 1 & 3, fraction = code & 1;
  const float magnitude =
      exponent == 0 ? 0.5f * fraction : static_cast<float>(1 << (exponent - 1)) * (1.0f + 0.5f * fraction);
  return code >> 3 ? -magnitude : magnitude;
}

__device__ __forceinline__ float e4m3_number(unsigned char code) {
  __nv_fp8_e4m3 number;
  number.__x = code;
  return to_float(number);
}

/// The tensor's scale S, as blocks need it.
struct GlobalScale {
  float per_six;  ///< RN32(S RN32(1 / 6))
  float inverse;  ///< RN32(1 / S)
};

__device__ __forceinline__ GlobalScale global_scale(float amax) {
  const float quotient = fminf(__fdiv_rn(kLargest, amax), kMost);
  const float scale = amax == 0.0f || quotient == 0.0f ? 1.0f : quotient;
  return {__fmul_rn(scale, 1.0f / 6.0f), __frcp_rn(scale)};
}

struct BlockScale {
  unsigned char stored;
  float factor;
};

__device__ __forceinline__ BlockScale block_scale(float amax, const GlobalScale& global) {
  const auto stored =
      static_cast<unsigned char>(__nv_cvt_float_to_fp8(__fmul_rn(amax, global.per_six), __NV_SATFINITE, __NV_E4M3));
  return {stored, fminf(__frcp_rn(__fmul_rn(e4m3_number(stored), global.inverse)), kMost)};
}

/// max over the sixteen threads of a tile.
__device__ __forceinline__ float tile_max(float value) {
#pragma unroll
  for (int distance = 1; distance < kBlock; distance *= 2) {
    value = fmaxf(value, shuffle_xor(value, distance));
  }
  return value;
}

__device__ __forceinline__ float line_amax(const float (&line)[kBlock]) {
  float amax = 0.0f;
#pragma unroll
  for (int i = 0; i < kBlock; ++i) {
    amax = fmaxf(amax, fabsf(line[i]));
  }
  return amax;
}

/// A block of a line, of which the first `count` elements are in the matrix.
template <bool kStochastic>
__device__ __forceinline__ void store_block(const Nvfp4QuantizeLaunch& p, bool turned, const float (&line)[kBlock],
                                            const BlockScale& scale, std::int64_t number, std::int64_t first,
                                            int count) {
  const Nvfp4Codes& to = turned ? p.along_columns : p.along_rows;
  const std::int64_t length = turned ? p.rows : p.cols;
  Draws draws{};
  if constexpr (kStochastic) {
    const std::int64_t across = (length + kBlock - 1) / kBlock;
    draws.bits = philox(static_cast<std::uint64_t>(2 * (number * across + first / kBlock) + (turned ? 1 : 0)), p.seed);
  }
  const auto code = [&](int i) {
    const float scaled = __fmul_rn(line[i], scale.factor);
    return kStochastic ? drawn_e2m1_code(scaled, draws.byte(i)) : e2m1_code(scaled);
  };
  to.scales[number * to.scale_line + first / kBlock] = scale.stored;
  unsigned char* codes = to.codes + (number * length + first) / 2;
#pragma unroll
  for (int i = 0; i < kBlock; i += 2) {
    if (i < count) {
      codes[i / 2] = static_cast<unsigned char>(code(i) | code(i + 1) << 4);
    }
  }
}

__device__ __forceinline__ int elements_left(std::int64_t length, std::int64_t first) {
  return static_cast<int>(min(length - first, static_cast<std::int64_t>(kBlock)));
}

/// The random Hadamard transform, with sums in FP64, rounded to BF16.
__device__ __forceinline__ void transform(float (&line)[kBlock]) {
  constexpr unsigned kSigns = 0xD7E8;  // bit j: element j changes its sign
  double points[kBlock];
#pragma unroll
  for (int j = 0; j < kBlock; ++j) {
    points[j] = kSigns >> j & 1 ? -static_cast<double>(line[j]) : static_cast<double>(line[j]);
  }
#pragma unroll
  for (int half = 1; half < kBlock; half *= 2) {
#pragma unroll
    for (int j = 0; j < kBlock; ++j) {
      if ((j & half) == 0) {
        const double a = points[j], b = points[j | half];
        points[j] = a + b;
        points[j | half] = a - b;
      }
    }
  }
#pragma unroll
  for (int j = 0; j < kBlock; ++j) {
    line[j] = __bfloat162float(__double2bfloat16(0.25 * (points[j] + 0.0)));
  }
}

/// Elements outside x are zeros.
template <class In>
__device__ __forceinline__ void load_line(const In* x, int count, float (&line)[kBlock]) {
#pragma unroll
  for (int i = 0; i < kBlock; ++i) {
    line[i] = i < count ? to_float(x[i]) : 0.0f;
  }
}

template <class In, bool kStochastic>
__global__ void __launch_bounds__(kThreads) quantize_tiles(const __grid_constant__ Nvfp4QuantizeLaunch p) {
  __shared__ float exchanged[kTiles][kBlock * kPitch];
  const bool transforms = p.transformed_amax != nullptr;
  const GlobalScale global = global_scale(*p.global_amax);
  const GlobalScale of_columns = transforms ? global_scale(*p.transformed_amax) : global;
  const std::int64_t down = (p.rows + kBlock - 1) / kBlock, across = (p.cols + kBlock - 1) / kBlock;
  const int lane = static_cast<int>(threadIdx.x) % kBlock;
  float* tile = exchanged[threadIdx.x / kBlock];
  // All threads of a block take part in every round, whether they have a tile or not.
  for (std::int64_t base = std::int64_t{blockIdx.x} * kTiles; base < down * across;
       base += std::int64_t{gridDim.x} * kTiles) {
    const std::int64_t number = base + threadIdx.x / kBlock;
    const std::int64_t first_row = number / across * kBlock, first_col = number % across * kBlock;
    const std::int64_t row = first_row + lane, col = first_col + lane;
    float line[kBlock];
    const int count = row < p.rows ? elements_left(p.cols, first_col) : 0;
    load_line(static_cast<const In*>(p.x.data) + row * p.cols + first_col, count, line);
    const float amax = line_amax(line), square = tile_max(amax);
    if (p.along_rows.codes != nullptr && row < p.rows) {
      const BlockScale scale = block_scale(p.is_square ? square : amax, global);
      store_block<kStochastic>(p, false, line, scale, row, first_col, count);
    }
    if (p.along_columns.codes != nullptr) {
#pragma unroll
      for (int i = 0; i < kBlock; ++i) {
        tile[lane * kPitch + i] = line[i];
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < kBlock; ++i) {
        line[i] = tile[i * kPitch + lane];
      }
      __syncwarp();
      if (first_row < p.rows && col < p.cols) {
        if (transforms) {
          transform(line);
        }
        const BlockScale scale = block_scale(p.is_square ? square : line_amax(line), of_columns);
        store_block<kStochastic>(p, true, line, scale, col, first_row, elements_left(p.rows, first_row));
      }
    }
  }
}

template <class Out>
__global__ void __launch_bounds__(kThreads) dequantize_blocks(const __grid_constant__ Nvfp4DequantizeLaunch p) {
  const std::int64_t across = (p.cols + kBlock - 1) / kBlock, step = std::int64_t{gridDim.x} * kThreads;
  auto* y = static_cast<Out*>(p.y.data);
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < p.rows * across; i += step) {
    const std::int64_t row = i / across, block = i % across, first = row * p.cols + block * kBlock;
    const int count = elements_left(p.cols, block * kBlock);
    const float stored = e4m3_number(p.scales[row * p.scale_line + block]);
    const float scale = __fmul_rn(__fmul_rn(stored, *p.global_amax), 1.0f / kLargest);
#pragma unroll
    for (int k = 0; k < kBlock; k += 2) {
      if (k < count) {
        const unsigned byte = p.codes[(first + k) / 2];
        y[first + k] = from_float<Out>(__fmul_rn(e2m1_number(byte & 15), scale));
        y[first + k + 1] = from_float<Out>(__fmul_rn(e2m1_number(byte >> 4), scale));
      }
    }
  }
}

unsigned blocks_for(std::int64_t threads) {
  return static_cast<unsigned>(std::min<std::int64_t>((threads + kThreads - 1) / kThreads, kMaxBlocks));
}

}  // namespace

cudaError_t launch_nvfp4_quantize(const Nvfp4QuantizeLaunch& launch, cudaStream_t stream) {
  if (is_fp8(launch.x.storage)) {
    return cudaErrorNotSupported;
  }
  const std::int64_t tiles = ((launch.rows + kBlock - 1) / kBlock) * ((launch.cols + kBlock - 1) / kBlock);
  if (tiles == 0) {
    return cudaSuccess;
  }
  return visit_wide_storage(launch.x.storage, [&](auto type) {
    using In = typename decltype(type)::type;
    const unsigned blocks = blocks_for(tiles * kBlock);
    launch.is_stochastic ? quantize_tiles<In, true><<<blocks, kThreads, 0, stream>>>(launch)
                         : quantize_tiles<In, false><<<blocks, kThreads, 0, stream>>>(launch);
    return cudaGetLastError();
  });
}

cudaError_t launch_nvfp4_dequantize(const Nvfp4DequantizeLaunch& launch, cudaStream_t stream) {
  if (is_fp8(launch.y.storage)) {
    return cudaErrorNotSupported;
  }
  const std::int64_t blocks = launch.rows * ((launch.cols + kBlock - 1) / kBlock);
  if (blocks == 0) {
    return cudaSuccess;
  }
  return visit_wide_storage(launch.y.storage, [&](auto type) {
    dequantize_blocks<typename decltype(type)::type><<<blocks_for(blocks), kThreads, 0, stream>>>(launch);
    return cudaGetLastError();
  });
}

}  // namespace numcheck::kernels::cuda
