#include <algorithm>
#include <cstddef>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "tests/gpu/k_fault.hpp"

namespace numcheck::wrapping {
namespace {

using kernels::cuda::Storage;

__host__ __device__ double load(const Matrix& matrix, std::int64_t at) {
  switch (matrix.storage) {
    case Storage::bf16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(matrix.data)[at]);
    case Storage::fp16:
      return __half2float(static_cast<const __half*>(matrix.data)[at]);
    case Storage::fp8_e4m3:
      return static_cast<float>(static_cast<const __nv_fp8_e4m3*>(matrix.data)[at]);
    case Storage::fp8_e5m2:
      return static_cast<float>(static_cast<const __nv_fp8_e5m2*>(matrix.data)[at]);
    case Storage::fp32:
      break;
  }
  return static_cast<const float*>(matrix.data)[at];
}

/// Rounds once, to nearest even; FP8 saturates, as cuBLASLt's outputs do.
__host__ __device__ void store(const Matrix& matrix, std::int64_t at, double value) {
  switch (matrix.storage) {
    case Storage::bf16:
      static_cast<__nv_bfloat16*>(matrix.data)[at] = __double2bfloat16(value);
      return;
    case Storage::fp16:
      static_cast<__half*>(matrix.data)[at] = __double2half(value);
      return;
    case Storage::fp8_e4m3:
      static_cast<__nv_fp8_storage_t*>(matrix.data)[at] = __nv_cvt_double_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
      return;
    case Storage::fp8_e5m2:
      static_cast<__nv_fp8_storage_t*>(matrix.data)[at] = __nv_cvt_double_to_fp8(value, __NV_SATFINITE, __NV_E5M2);
      return;
    case Storage::fp32:
      static_cast<float*>(matrix.data)[at] = static_cast<float>(value);
      return;
  }
}

/// Where op(M)(row, col) of a batch is.
__host__ __device__ std::int64_t index_of(const Matrix& matrix, std::int64_t batch, std::int64_t row,
                                          std::int64_t col) {
  const std::int64_t slow = matrix.transposed ? row : col;
  const std::int64_t fast = matrix.transposed ? col : row;
  return batch * matrix.batch_stride + slow * matrix.ld + fast;
}

__host__ __device__ double value_of(const float* scale) {
  return scale == nullptr ? 1.0 : static_cast<double>(*scale);
}

/// Element `element` of all, counted through the rows, columns and matrices of D.
__host__ __device__ void plant_in(const Product& product, const KFault& fault, std::int64_t element) {
  const Matrix &a = product.a, &b = product.b, &d = product.d;
  const std::int64_t row = element % d.rows;
  const std::int64_t col = element / d.rows % d.cols;
  const std::int64_t batch = element / d.rows / d.cols;
  double sum = 0;
  for (const Term& term : fault.terms) {
    if (term.sign == 0) {
      continue;
    }
    if (col + term.columns >= d.cols) {
      return;
    }
    for (std::int64_t t = term.begin - term.earlier; t < term.end - term.earlier; ++t) {
      sum += term.sign * load(a, index_of(a, batch, row, t)) * load(b, index_of(b, batch, t, col + term.columns));
    }
  }
  if (sum != 0) {
    const double scale =
        product.alpha * value_of(product.a_scale) * value_of(product.b_scale) * value_of(product.d_scale);
    const std::int64_t at = index_of(d, batch, row, col);
    store(d, at, load(d, at) + scale * sum);
  }
}

__host__ __device__ std::int64_t count_of(const Product& product) {
  return product.batch * product.d.rows * product.d.cols;
}

__global__ void plant(Product product, KFault fault) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count_of(product);
       i += step) {
    plant_in(product, fault, i);
  }
}

}  // namespace

cudaError_t launch_k_fault(const Product& product, const KFault& fault, cudaStream_t stream) {
  constexpr std::int64_t kThreads = 128, kMaxBlocks = 1 << 16;
  const std::int64_t blocks = std::min((count_of(product) + kThreads - 1) / kThreads, kMaxBlocks);
  if (blocks > 0) {
    plant<<<static_cast<unsigned>(blocks), static_cast<unsigned>(kThreads), 0, stream>>>(product, fault);
  }
  return cudaGetLastError();
}

void plant_k_fault_on_host(const Product& product, const KFault& fault) {
  for (std::int64_t i = 0; i < count_of(product); ++i) {
    plant_in(product, fault, i);
  }
}

}  // namespace numcheck::wrapping
