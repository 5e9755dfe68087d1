// Faults of sums over k, planted in finished products. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/storage.hpp"

namespace numcheck::wrapping {

/// A column-major operand as cuBLASLt sees it: op(M) is rows x cols, and M its transpose if `transposed`.
struct Matrix {
  void* data = nullptr;
  kernels::cuda::Storage storage = kernels::cuda::Storage::fp32;
  std::int64_t rows = 0, cols = 0;  ///< of op(M)
  std::int64_t ld = 0, batch_stride = 0;
  bool transposed = false;
};

/// D = alpha op(A) op(B) and whatever was added to it. D is never transposed.
struct Product {
  Matrix a, b, d;
  std::int64_t batch = 1;
  double alpha = 1;
  /// In the memory of D; null: 1. Values of A and B are code * scale, codes of D are value * scale.
  const float* a_scale = nullptr;
  const float* b_scale = nullptr;
  const float* d_scale = nullptr;

  [[nodiscard]] std::int64_t k() const { return a.cols; }
};

/// `sign` times the products `begin` to `end` - 1 of k are added, read from `earlier` before them in k and from `columns`
/// further right in op(B).
struct Term {
  std::int64_t begin = 0, end = 0;
  int sign = 0;
  std::int64_t earlier = 0, columns = 0;
};

/// What is added to the sum of every element that has all of its terms: elements of the last column have no next one.
struct KFault {
  Term terms[2];  ///< those with sign 0 add nothing
};

/// Enqueues: each element of D becomes its stored value plus the terms, computed in double and rounded to D's format
/// once. Elements to which the terms add 0 keep their bits.
cudaError_t launch_k_fault(const Product& product, const KFault& fault, cudaStream_t stream);

/// The same for a product in host memory, by the code that the kernel runs.
void plant_k_fault_on_host(const Product& product, const KFault& fault);

}  // namespace numcheck::wrapping
