// Launcher of our own casts to FP8 with a scale per block. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/tensor.hpp"

namespace numcheck::kernels::cuda {

/// Elements that share a scale, and its format.
enum class Blocks : unsigned char {
  line,    ///< 128 of a row, or of a column; FP32
  square,  ///< 128 x 128; FP32
  mx,      ///< 32 of a row, or of a column; E8M0
};

/// Codes of one layout.
struct BlockCodes {
  void* codes = nullptr;        ///< null: the layout is not written
  bool transposed = false;      ///< [cols, rows]
  void* scales = nullptr;       ///< that of block (i, j), counted along the rows' and the columns' index of x,
  std::int64_t scale_line = 0;  ///< is element i scale_line + j scale_step
  std::int64_t scale_step = 1;
};

struct BlockQuantizeLaunch {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Tensor x;  ///< rows x cols, not FP8
  Blocks blocks = Blocks::line;
  Storage format = Storage::fp8_e4m3;  ///< of the codes
  BlockCodes along_rows;               ///< blocks of a row, or square ones
  BlockCodes along_columns;            ///< blocks of a column, or square ones
  float epsilon = 0;                   ///< least amax; FP32 scales
  bool power_of_two = true;            ///< FP32 scales are rounded down to powers of two
  bool round_up = true;                ///< E8M0 scales are rounded up, not by floor(log2 amax)
};

/// Codes and scales by the rules in op/quantize.hpp, from one read of x. Any shape: blocks at the edges are smaller.
cudaError_t launch_block_quantize(const BlockQuantizeLaunch& launch, cudaStream_t stream);

struct BlockDequantizeLaunch {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Tensor q;  ///< rows x cols, FP8
  Tensor y;  ///< rows x cols, not FP8
  std::int64_t block_rows = 1;
  std::int64_t block_cols = 1;
  bool has_exponents = false;  ///< scales are E8M0, else FP32
  const void* scales = nullptr;
  std::int64_t scale_line = 0;  ///< as in BlockCodes
  std::int64_t scale_step = 1;
};

/// y = RN(RN32(q scale_inv)), with the scale_inv of the code's block.
cudaError_t launch_block_dequantize(const BlockDequantizeLaunch& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
