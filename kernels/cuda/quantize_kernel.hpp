// Launchers of the FP8 casts and of the transpose. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/tensor.hpp"

namespace numcheck::kernels::cuda {

struct QuantizeLaunch {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Tensor x;                      ///< fp32, bf16 or fp16
  Tensor q;                      ///< codes; data null: not written
  Tensor q_t;                    ///< transposed codes; data null: not written
  const float* scale = nullptr;  ///< one number
  float* amax = nullptr;         ///< raised to max |x|
  float* scale_inv = nullptr;    ///< set to RN32(1 / scale)
};

/// q = RN(sat(RN32(x scale))), q_t its transpose, amax = max(amax, |x|) with NaN dropped.
cudaError_t launch_quantize(const QuantizeLaunch& launch, cudaStream_t stream);

/// y = RN(RN32(q scale_inv)) for `elements` codes.
cudaError_t launch_dequantize(const Tensor& q, const float* scale_inv, const Tensor& y, std::int64_t elements,
                              cudaStream_t stream);

inline constexpr std::int64_t kMaxTransposedRows = std::int64_t{65535} * 32;  ///< tiles of 32 rows along the grid's y

/// y [cols, rows] = transpose of x [rows, cols]; elements of 1, 2 or 4 bytes, moved as bits.
cudaError_t launch_transpose(const void* x, void* y, std::int64_t rows, std::int64_t cols, int element_bytes,
                             cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
