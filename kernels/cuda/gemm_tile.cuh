// A tile of our own FP32 FMA product, for kernels that compute one product or several. Device code.
#pragma once

#include <cstdint>

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/gemm_kernel.hpp"

namespace numcheck::kernels::cuda {

constexpr int kTile = 64;     // rows and columns of D per block
constexpr int kDepth = 16;    // steps of k per pass through shared memory
constexpr int kThreads = 16;  // threads per block along each side
constexpr int kPerThread = kTile / kThreads;

/// gelu in the tanh form, with the constants sqrt(2/pi) and 0.044715.
__device__ inline float activate(Epilogue epilogue, float z) {
  if (epilogue == Epilogue::relu) {
    return z < 0.0f ? 0.0f : z;  // NaN stays NaN
  }
  if (epilogue == Epilogue::gelu) {
    const float inner = 0.7978845608028654f * (z + 0.044715f * z * z * z);
    return 0.5f * z * (1.0f + tanhf(inner));
  }
  return z;
}

/// Loads op(X)[row, col] of a stored matrix as FP32, or zero outside.
template <class T>
__device__ float load(const T* matrix, std::int64_t ld, bool transposed, std::int64_t row, std::int64_t rows,
                      std::int64_t col, std::int64_t cols) {
  if (row >= rows || col >= cols) {
    return 0.0f;
  }
  return to_float(transposed ? matrix[col * ld + row] : matrix[row * ld + col]);
}

__device__ inline std::int64_t offset_of(const ScaleView& scales, std::int64_t line, std::int64_t part) {
  return line / scales.lines * scales.by_line + part * scales.by_part;
}

__device__ inline float scale_at(const ScaleView& scales, std::int64_t line, std::int64_t part) {
  const std::int64_t at = offset_of(scales, line, part);
  if (scales.e4m3 != nullptr) {
    __nv_fp8_e4m3 scale;
    scale.__x = scales.e4m3[at] & 0x7f;
    return to_float(scale);
  }
  return scales.data[at];
}

/// alpha sA sB of an output in that part of k; without alpha where operands have factors of their own.
__device__ inline float scale_of(const GemmLaunch& p, std::int64_t row, std::int64_t col, std::int64_t part) {
  const float scale = scale_at(p.a_scales, row, part) * scale_at(p.b_scales, col, part);
  return p.a_factor != nullptr ? scale : p.alpha * scale;
}

/// What is left to multiply the sum by, if anything was.
__device__ inline float remaining_factor(const GemmLaunch& p) {
  return p.products == 0 ? p.alpha : p.alpha * (*p.a_factor * *p.b_factor);
}

/// The sum times 2^(eA + eB), rounded once: FP32 may hold neither power of two, nor their product.
__device__ inline float scaled_by_exponents(const GemmLaunch& p, float sum, std::int64_t row, std::int64_t col,
                                            std::int64_t part) {
  constexpr int kNan = 255, kBias = 127;
  const int a = p.a_scales.exponents[offset_of(p.a_scales, row, part)];
  const int b = p.b_scales.exponents[offset_of(p.b_scales, col, part)];
  return a == kNan || b == kNan ? nanf("") : scalbnf(sum, a + b - 2 * kBias);
}

/// A bias may have another format than D.
__device__ inline float read_bias(const MatrixView& bias, std::int64_t col) {
  switch (bias.storage) {
    case Storage::bf16:
      return to_float(static_cast<const __nv_bfloat16*>(bias.data)[col]);
    case Storage::fp16:
      return to_float(static_cast<const __half*>(bias.data)[col]);
    default:
      return static_cast<const float*>(bias.data)[col];
  }
}

/// A block computes tile number `tile`, counted along rows of tiles, of one matrix of the batch.
template <class A, class B, class Out>
__device__ void compute_tile(const GemmLaunch& p, std::int64_t tile, std::int64_t batch) {
  __shared__ float a_tile[kDepth][kTile];
  __shared__ float b_tile[kDepth][kTile];
  const std::int64_t column_tiles = (p.n + kTile - 1) / kTile;
  const std::int64_t row0 = tile / column_tiles * kTile;
  const std::int64_t col0 = tile % column_tiles * kTile;
  const auto* a = static_cast<const A*>(p.a.data) + batch * p.a.batch_stride;
  const auto* b = static_cast<const B*>(p.b.data) + batch * p.b.batch_stride;
  const int thread = threadIdx.y * kThreads + threadIdx.x;

  float sum[kPerThread][kPerThread] = {};
  float total[kPerThread][kPerThread] = {};  // of scaled parts
  const auto add_part = [&](std::int64_t part) {
    for (int i = 0; i < kPerThread; ++i) {
      for (int j = 0; j < kPerThread; ++j) {
        const std::int64_t row = row0 + threadIdx.y + i * kThreads;
        const std::int64_t col = col0 + threadIdx.x + j * kThreads;
        const bool inside = row < p.m && col < p.n;
        if (p.a_scales.exponents != nullptr) {
          const float scaled = inside ? scaled_by_exponents(p, sum[i][j], row, col, part) : 0;
          total[i][j] = part == 0 ? p.alpha * scaled : fmaf(p.alpha, scaled, total[i][j]);
        } else {
          const float scale = inside ? scale_of(p, row, col, part) : 0;
          total[i][j] = part == 0 ? sum[i][j] * scale : fmaf(sum[i][j], scale, total[i][j]);
        }
        sum[i][j] = 0;
      }
    }
  };
  for (std::int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
    for (int i = thread; i < kDepth * kTile; i += kThreads * kThreads) {
      // Neighbouring threads read neighbouring addresses, whichever way the operand is stored.
      const int along_k = p.trans_a ? i / kTile : i % kDepth;
      const int along_m = p.trans_a ? i % kTile : i / kDepth;
      a_tile[along_k][along_m] = load(a, p.a.ld, p.trans_a, row0 + along_m, p.m, k0 + along_k, p.k);
      const int down_k = p.trans_b ? i % kDepth : i / kTile;
      const int along_n = p.trans_b ? i / kDepth : i % kTile;
      b_tile[down_k][along_n] = load(b, p.b.ld, p.trans_b, k0 + down_k, p.k, col0 + along_n, p.n);
    }
    __syncthreads();
    // Not past k: a padded 0 * 0 would turn a sum of -0 into +0.
    const int depth = p.k - k0 < kDepth ? static_cast<int>(p.k - k0) : kDepth;
    for (int t = 0; t < depth; ++t) {
      for (int i = 0; i < kPerThread; ++i) {
        for (int j = 0; j < kPerThread; ++j) {
          sum[i][j] = fmaf(a_tile[t][threadIdx.y + i * kThreads], b_tile[t][threadIdx.x + j * kThreads], sum[i][j]);
        }
      }
    }
    __syncthreads();
    if (const std::int64_t end = k0 + depth; p.products != 0 && (end % p.products == 0 || end == p.k)) {
      add_part((end - 1) / p.products);
    }
  }

  for (int i = 0; i < kPerThread; ++i) {
    for (int j = 0; j < kPerThread; ++j) {
      const std::int64_t row = row0 + threadIdx.y + i * kThreads;
      const std::int64_t col = col0 + threadIdx.x + j * kThreads;
      if (row >= p.m || col >= p.n) {
        continue;
      }
      const float all = p.products == 0 ? sum[i][j] : total[i][j];
      const bool is_scaled = p.products != 0 && p.a_factor == nullptr;
      const float product = is_scaled ? all : remaining_factor(p) * all;
      float z = p.alpha == 0 ? 0 : product;  // BLAS does not read A and B then
      if (p.c.data != nullptr) {
        const auto* c = static_cast<const Out*>(p.c.data) + batch * p.c.batch_stride;
        z = fmaf(p.beta, to_float(c[row * p.c.ld + col]), z);
      }
      if (p.bias.data != nullptr) {
        z = z + read_bias(p.bias, col);
      }
      auto* d = static_cast<Out*>(p.d.data) + batch * p.d.batch_stride;
      d[row * p.d.ld + col] = from_float<Out>(activate(p.epilogue, z));
    }
  }
}

/// Tiles of a product's output.
__host__ __device__ inline std::int64_t tiles_of(std::int64_t m, std::int64_t n) {
  return (m + kTile - 1) / kTile * ((n + kTile - 1) / kTile);
}

}  // namespace numcheck::kernels::cuda
