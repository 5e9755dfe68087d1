#include "kernels/cuda/element.cuh"
#include "kernels/cuda/quantize_kernel.hpp"
#include "kernels/cuda/reduce.cuh"

namespace numcheck::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 32;     // rows and columns of a tile that is transposed in shared memory
constexpr int kTileRows = 8;  // threads of a block along the tile's rows
constexpr int kMaxBlocks = 1 << 16;
constexpr int kInFlight = 4;  // accesses that a thread has in flight at once

int blocks_for(std::int64_t work) {
  const std::int64_t blocks = (work + kThreads - 1) / kThreads;
  return static_cast<int>(blocks < 1 ? 1 : blocks < kMaxBlocks ? blocks : kMaxBlocks);
}

/// Thread 0 of the grid.
__device__ bool is_first() {
  return blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0 && threadIdx.y == 0;
}

/// N elements per thread and step; the last elements % N one at a time.
template <class In, class Out, int N>
__global__ void quantize_rows(const In* __restrict__ x, Out* __restrict__ q, std::int64_t elements,
                              const float* __restrict__ scale, float* amax, float* scale_inv) {
  __shared__ float scratch[kReduceScratch];
  const float s = *scale;
  float largest = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t groups = elements / N;
  for (std::int64_t begin = first; begin < groups; begin += kInFlight * step) {
    Vec<In, N> in[kInFlight];
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      if (begin + u * step < groups) {
        in[u] = Vec<In, N>::load(x + (begin + u * step) * N);
      }
    }
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      if (begin + u * step < groups) {
        Vec<Out, N> out;
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const float value = to_float(in[u].at[k]);
          largest = fmaxf(largest, fabsf(value));
          out.at[k] = from_float<Out>(value * s);
        }
        out.store(q + (begin + u * step) * N);
      }
    }
  }
  for (std::int64_t i = elements / N * N + first; i < elements; i += step) {
    const float value = to_float(x[i]);
    largest = fmaxf(largest, fabsf(value));
    q[i] = from_float<Out>(value * s);
  }
  largest = block_max(largest, scratch);
  if (threadIdx.x == 0) {
    raise_amax(amax, largest);
  }
  if (is_first()) {
    *scale_inv = __frcp_rn(s);
  }
}

/// One tile per block: codes are written in both layouts from one read. `q` may be null.
template <class In, class Out>
__global__ void quantize_tiles(const In* __restrict__ x, Out* q, Out* q_t, std::int64_t rows, std::int64_t cols,
                               const float* __restrict__ scale, float* amax, float* scale_inv) {
  __shared__ Out tile[kTile][kTile + 4];  // four bytes of padding keep columns on different banks
  const float s = *scale;
  float largest = 0;
  const std::int64_t col = std::int64_t{blockIdx.x} * kTile + threadIdx.x;
  const std::int64_t top = std::int64_t{blockIdx.y} * kTile;
  for (int r = static_cast<int>(threadIdx.y); r < kTile; r += kTileRows) {
    const std::int64_t row = top + r;
    if (row < rows && col < cols) {
      const float value = to_float(x[row * cols + col]);
      largest = fmaxf(largest, fabsf(value));
      const Out code = from_float<Out>(value * s);
      tile[r][threadIdx.x] = code;
      if (q != nullptr) {
        q[row * cols + col] = code;
      }
    }
  }
  __syncthreads();
  const std::int64_t out_col = top + threadIdx.x;
  for (int r = static_cast<int>(threadIdx.y); r < kTile; r += kTileRows) {
    const std::int64_t out_row = std::int64_t{blockIdx.x} * kTile + r;
    if (out_row < cols && out_col < rows) {
      q_t[out_row * rows + out_col] = tile[threadIdx.x][r];
    }
  }
  largest = warp_max(largest);
  if (threadIdx.x == 0) {
    raise_amax(amax, largest);
  }
  if (is_first()) {
    *scale_inv = __frcp_rn(s);
  }
}

template <class In, class Out, int N>
__global__ void dequantize_codes(const In* __restrict__ q, const float* __restrict__ scale_inv, Out* __restrict__ y,
                                 std::int64_t elements) {
  const float s = *scale_inv;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (std::int64_t i = first; i < elements / N; i += step) {
    const auto in = Vec<In, N>::load(q + i * N);
    Vec<Out, N> out;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      out.at[k] = from_float<Out>(to_float(in.at[k]) * s);
    }
    out.store(y + i * N);
  }
  for (std::int64_t i = elements / N * N + first; i < elements; i += step) {
    y[i] = from_float<Out>(to_float(q[i]) * s);
  }
}

template <class T>
__global__ void transpose_tiles(const T* __restrict__ x, T* __restrict__ y, std::int64_t rows, std::int64_t cols) {
  __shared__ T tile[kTile][kTile + 4 / sizeof(T)];
  const std::int64_t col = std::int64_t{blockIdx.x} * kTile + threadIdx.x;
  const std::int64_t top = std::int64_t{blockIdx.y} * kTile;
  for (int r = static_cast<int>(threadIdx.y); r < kTile; r += kTileRows) {
    if (top + r < rows && col < cols) {
      tile[r][threadIdx.x] = x[(top + r) * cols + col];
    }
  }
  __syncthreads();
  const std::int64_t out_col = top + threadIdx.x;
  for (int r = static_cast<int>(threadIdx.y); r < kTile; r += kTileRows) {
    const std::int64_t out_row = std::int64_t{blockIdx.x} * kTile + r;
    if (out_row < cols && out_col < rows) {
      y[out_row * rows + out_col] = tile[threadIdx.x][r];
    }
  }
}

/// Elements per access of the wider of the two formats.
template <class A, class B>
constexpr int width_of() {
  return kAccessBytes / static_cast<int>(sizeof(A) > sizeof(B) ? sizeof(A) : sizeof(B));
}

constexpr unsigned kMaxGridRows = 65535;

/// A grid of tiles; an error if the rows need more blocks than a grid can have.
cudaError_t tile_grid(std::int64_t rows, std::int64_t cols, dim3& grid) {
  const std::int64_t across = (cols + kTile - 1) / kTile;
  const std::int64_t down = (rows + kTile - 1) / kTile;
  grid = dim3(static_cast<unsigned>(across), static_cast<unsigned>(down));
  return down <= kMaxGridRows ? cudaSuccess : cudaErrorInvalidConfiguration;
}

template <class In, class Out>
cudaError_t quantize_as(const QuantizeLaunch& p, cudaStream_t stream) {
  const auto* x = static_cast<const In*>(p.x.data);
  auto* q = static_cast<Out*>(p.q.data);
  auto* q_t = static_cast<Out*>(p.q_t.data);
  if (q_t != nullptr && p.rows > 0 && p.cols > 0) {
    dim3 grid;
    if (const cudaError_t error = tile_grid(p.rows, p.cols, grid); error != cudaSuccess) {
      return error;
    }
    quantize_tiles<In, Out>
        <<<grid, dim3(kTile, kTileRows), 0, stream>>>(x, q, q_t, p.rows, p.cols, p.scale, p.amax, p.scale_inv);
    return cudaGetLastError();
  }
  constexpr int kWidth = width_of<In, Out>();
  const std::int64_t elements = p.rows * p.cols;
  const bool aligned = can_vectorise<In, kWidth>(x, kWidth, kWidth) && can_vectorise<Out, kWidth>(q, kWidth, kWidth);
  const int blocks = blocks_for((aligned ? elements / kWidth : elements) / kInFlight);
  if (aligned) {
    quantize_rows<In, Out, kWidth><<<blocks, kThreads, 0, stream>>>(x, q, elements, p.scale, p.amax, p.scale_inv);
  } else {
    quantize_rows<In, Out, 1><<<blocks, kThreads, 0, stream>>>(x, q, elements, p.scale, p.amax, p.scale_inv);
  }
  return cudaGetLastError();
}

template <class In, class Out>
cudaError_t dequantize_as(const Tensor& q, const float* scale_inv, const Tensor& y, std::int64_t elements,
                          cudaStream_t stream) {
  constexpr int kWidth = width_of<In, Out>();
  const auto* codes = static_cast<const In*>(q.data);
  auto* out = static_cast<Out*>(y.data);
  if (can_vectorise<In, kWidth>(codes, kWidth, kWidth) && can_vectorise<Out, kWidth>(out, kWidth, kWidth)) {
    dequantize_codes<In, Out, kWidth>
        <<<blocks_for(elements / kWidth), kThreads, 0, stream>>>(codes, scale_inv, out, elements);
  } else {
    dequantize_codes<In, Out, 1><<<blocks_for(elements), kThreads, 0, stream>>>(codes, scale_inv, out, elements);
  }
  return cudaGetLastError();
}

template <class T>
cudaError_t transpose_as(const void* x, void* y, std::int64_t rows, std::int64_t cols, cudaStream_t stream) {
  dim3 grid;
  if (const cudaError_t error = tile_grid(rows, cols, grid); error != cudaSuccess) {
    return error;
  }
  transpose_tiles<T>
      <<<grid, dim3(kTile, kTileRows), 0, stream>>>(static_cast<const T*>(x), static_cast<T*>(y), rows, cols);
  return cudaGetLastError();
}

/// f(Type<In>{}, Type<Out>{}) with a wide and an FP8 type.
template <class F>
cudaError_t visit_pair(Storage wide, Storage code, F&& f) {
  return visit_wide_storage(wide, [&](auto in) {
    return code == Storage::fp8_e5m2 ? f(in, Type<__nv_fp8_e5m2>{}) : f(in, Type<__nv_fp8_e4m3>{});
  });
}

}  // namespace

cudaError_t launch_quantize(const QuantizeLaunch& launch, cudaStream_t stream) {
  const Storage code = launch.q.data != nullptr ? launch.q.storage : launch.q_t.storage;
  return visit_pair(launch.x.storage, code, [&](auto in, auto out) {
    return quantize_as<typename decltype(in)::type, typename decltype(out)::type>(launch, stream);
  });
}

cudaError_t launch_dequantize(const Tensor& q, const float* scale_inv, const Tensor& y, std::int64_t elements,
                              cudaStream_t stream) {
  return visit_pair(y.storage, q.storage, [&](auto out, auto in) {
    return dequantize_as<typename decltype(in)::type, typename decltype(out)::type>(q, scale_inv, y, elements, stream);
  });
}

cudaError_t launch_transpose(const void* x, void* y, std::int64_t rows, std::int64_t cols, int element_bytes,
                             cudaStream_t stream) {
  if (rows == 0 || cols == 0) {
    return cudaSuccess;
  }
  switch (element_bytes) {
    case 1:
      return transpose_as<unsigned char>(x, y, rows, cols, stream);
    case 2:
      return transpose_as<unsigned short>(x, y, rows, cols, stream);
    default:
      return transpose_as<unsigned>(x, y, rows, cols, stream);
  }
}

}  // namespace numcheck::kernels::cuda
