// Launchers of scaled, masked softmax and of its gradient. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/tensor.hpp"

namespace numcheck::kernels::cuda {

enum class Diagonal { none, top_left, bottom_right };

/// matrices x sq rows of sk columns.
struct SoftmaxShape {
  std::int64_t matrices = 0;
  std::int64_t sq = 0;
  std::int64_t sk = 0;
  Diagonal diagonal = Diagonal::none;  ///< columns to its right are not part of a row; their outputs are zero
};

struct SoftmaxForward {
  SoftmaxShape shape;
  Tensor x;
  Tensor y;
  const std::uint8_t* mask = nullptr;  ///< one sq x sk matrix per `heads` matrices, 1 = masked; null: none
  std::int64_t heads = 1;
  float scale = 1;
  float masked_score = 0;           ///< replaces masked scores
  bool masked_row_is_zero = false;  ///< a row whose maximum is masked_score is all zeros
  std::int64_t lanes = 0;           ///< > 0: every row is padded with masked_score to this many elements
};

struct SoftmaxBackward {
  SoftmaxShape shape;
  Tensor dy;
  Tensor y;
  Tensor dx;
  float scale = 1;
};

/// t_j = RN(x_j scale) or masked_score, m = max t, e_j = expf(RN(t_j - m)), y_j = RN(RN(e_j RN(1 / sum e))). FP32, no
/// fast math. Rows are read once; rows of more than 32768 columns, three times.
cudaError_t launch_softmax_fwd(const SoftmaxForward& launch, cudaStream_t stream);

/// p_j = RN(dy_j y_j), dx_j = RN(RN(scale RN(p_j - RN(y_j sum p)))). FP32. Rows of more than 16384 (FP32) or 32768
/// columns are read twice.
cudaError_t launch_softmax_bwd(const SoftmaxBackward& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
