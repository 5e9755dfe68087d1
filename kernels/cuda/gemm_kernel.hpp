// Launcher of our own FP32 FMA product. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/storage.hpp"

namespace numcheck::kernels::cuda {

enum class Epilogue { none, relu, gelu };

/// A row-major matrix (or a stack of them) in device memory.
struct MatrixView {
  void* data = nullptr;  ///< first element
  Storage storage = Storage::fp32;
  std::int64_t ld = 0;
  std::int64_t batch_stride = 0;
};

/// Factors of codes: that of part p of k of line l (a row of A, a column of B) is at l / lines * by_line + p * by_part. One of the
/// pointers is not null if there are any.
struct ScaleView {
  const float* data = nullptr;
  const std::uint8_t* exponents = nullptr;  ///< E8M0
  const std::uint8_t* e4m3 = nullptr;       ///< without their signs
  std::int64_t lines = 1;
  std::int64_t by_line = 0;
  std::int64_t by_part = 0;
};

struct GemmLaunch {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  bool trans_a = false;
  bool trans_b = false;
  float alpha = 1;
  float beta = 0;
  Epilogue epilogue = Epilogue::none;
  MatrixView a, b, c, d;  ///< c.data null: no addend
  MatrixView bias;        ///< n numbers; data null: none
  ScaleView a_scales, b_scales;
  std::int64_t products = 0;                             ///< with the same scales, a multiple of 16 or k
  const float *a_factor = nullptr, *b_factor = nullptr;  ///< of whole operands, besides those scales; null: none
};

/// D = f(alpha * S + beta * C + bias) with S the chain s = fma(a[i,t], b[t,j], s) over t = 0 ... k-1, from s = 0, in
/// FP32; operands are converted to FP32 exactly, products are exact inside the fma. Of FP8 codes, such a chain is made of
/// every part of k that has scales of its own, and alpha * S is the chain fma(s, alpha (sA sB), alpha * S) over the parts, or, of
/// powers of two in E8M0, fma(alpha, s 2^(eA + eB), alpha * S); with factors of whole operands, fA and fB, S is the chain
/// fma(s, sA sB, S), and alpha (fA fB) stands for alpha. The epilogue is FP32: z = alpha * S; z = fma(beta, C, z); z = z + bias; gelu
/// by tanhf; one rounding to D's format, to nearest even.
/// No fast math; the result does not depend on the launch grid.
cudaError_t launch_gemm(const GemmLaunch& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
