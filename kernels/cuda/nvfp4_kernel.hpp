// Launchers of our own casts to NVFP4 and back. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/tensor.hpp"

namespace numcheck::kernels::cuda {

/// Codes of one layout: of x along its rows, or of its transpose.
struct Nvfp4Codes {
  unsigned char* codes = nullptr;   ///< two per byte, lines without padding; null: the layout is not written
  unsigned char* scales = nullptr;  ///< E4M3
  std::int64_t scale_line = 0;      ///< scales from one line to the next
};

struct Nvfp4QuantizeLaunch {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Tensor x;                            ///< rows x cols, not FP8
  const float* global_amax = nullptr;  ///< one number
  bool is_square = false;              ///< blocks of 16 x 16, not of 16 of a line
  bool is_stochastic = false;          ///< codes are rounded at random, not to nearest even
  std::uint64_t seed = 0;
  const float* transformed_amax = nullptr;  ///< of transformed columns; null: they are not transformed
  Nvfp4Codes along_rows;                    ///< cols is even
  Nvfp4Codes along_columns;                 ///< rows is even
};

/// Codes and scales by the rules in op/nvfp4.hpp, from one read of x. Element k of a block has byte k of the Philox4x32-10 block
/// whose counter is twice the number of the block, counted along the layout's lines, plus 1 for the layout along columns.
cudaError_t launch_nvfp4_quantize(const Nvfp4QuantizeLaunch& launch, cudaStream_t stream);

struct Nvfp4DequantizeLaunch {
  std::int64_t rows = 0;
  std::int64_t cols = 0;  ///< even
  const unsigned char* codes = nullptr;
  const unsigned char* scales = nullptr;  ///< E4M3
  std::int64_t scale_line = 0;
  const float* global_amax = nullptr;
  Tensor y;  ///< rows x cols, not FP8
};

/// y = RN(RN32(code RN32(RN32(scale global_amax) RN32(1 / 2688)))).
cudaError_t launch_nvfp4_dequantize(const Nvfp4DequantizeLaunch& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
