#include <algorithm>

#include "kernels/cuda/block_quantize_kernel.hpp"
#include "kernels/cuda/block_scale.cuh"

namespace numcheck::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kMaxBlocks = 1 << 16;

__device__ __forceinline__ float scale_at(const BlockDequantizeLaunch& p, std::int64_t row, std::int64_t col) {
  const std::int64_t at = row / p.block_rows * p.scale_line + col / p.block_cols * p.scale_step;
  return p.has_exponents ? power_of(static_cast<const unsigned char*>(p.scales)[at])
                         : static_cast<const float*>(p.scales)[at];
}

/// N codes of a row at a time; they have one scale unless blocks are a column wide.
template <class Code, class Out, int N>
__global__ void dequantize_blocks(const BlockDequantizeLaunch p) {
  const auto* q = static_cast<const Code*>(p.q.data);
  auto* y = static_cast<Out*>(p.y.data);
  const std::int64_t across = p.cols / N, step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < p.rows * across; i += step) {
    const std::int64_t row = i / across, col = i % across * N;
    const auto codes = Vec<Code, N>::load(q + row * p.cols + col);
    const bool one_scale = p.block_cols > 1;
    const float shared = scale_at(p, row, col);
    float values[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      values[k] = to_float(codes.at[k]) * (one_scale ? shared : scale_at(p, row, col + k));
    }
    rounded_vec<Out>(values).store(y + row * p.cols + col);
  }
}

template <class Code, class Out, int N>
cudaError_t launch_width(const BlockDequantizeLaunch& p, cudaStream_t stream) {
  const std::int64_t blocks = (p.rows * p.cols / N + kThreads - 1) / kThreads;
  if (blocks == 0) {
    return cudaSuccess;
  }
  dequantize_blocks<Code, Out, N>
      <<<static_cast<unsigned>(std::min<std::int64_t>(blocks, kMaxBlocks)), kThreads, 0, stream>>>(p);
  return cudaGetLastError();
}

template <class Code, class Out>
cudaError_t launch_as(const BlockDequantizeLaunch& p, cudaStream_t stream) {
  constexpr int kWidth = kAccessBytes / static_cast<int>(sizeof(Out));
  const bool aligned =
      can_vectorise<Code, kWidth>(p.q.data, p.cols, p.cols) && can_vectorise<Out, kWidth>(p.y.data, p.cols, p.cols);
  return aligned ? launch_width<Code, Out, kWidth>(p, stream) : launch_width<Code, Out, 1>(p, stream);
}

}  // namespace

cudaError_t launch_block_dequantize(const BlockDequantizeLaunch& launch, cudaStream_t stream) {
  if (is_fp8(launch.y.storage) || !is_fp8(launch.q.storage)) {
    return cudaErrorNotSupported;
  }
  return visit_wide_storage(launch.y.storage, [&](auto type) {
    using Out = typename decltype(type)::type;
    return launch.q.storage == Storage::fp8_e5m2 ? launch_as<__nv_fp8_e5m2, Out>(launch, stream)
                                                 : launch_as<__nv_fp8_e4m3, Out>(launch, stream);
  });
}

}  // namespace numcheck::kernels::cuda
