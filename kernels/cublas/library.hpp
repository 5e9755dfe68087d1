// The functions of cuBLAS that this program calls, bound when the library is loaded.
#pragma once

#include <string>

#include <cublas_v2.h>

#include "kernels/cuda_support/library.hpp"

namespace numcheck::kernels::cublas {

/// A loaded cuBLAS with one handle. Members have the signatures of cublas_v2.h.
class Cublas {
 public:
  /// Loads the library and creates the handle on the current device. Throws core::EnvironmentError or CublasError.
  explicit Cublas(const std::string& lib_dir);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  [[nodiscard]] cublasHandle_t handle() const noexcept { return handle_; }
  /// "13.1.0".
  [[nodiscard]] std::string version() const;

 private:
  cuda_support::SharedLibrary library_;

 public:
  decltype(&::cublasCreate_v2) create = library_.symbol<decltype(&::cublasCreate_v2)>("cublasCreate_v2");
  decltype(&::cublasDestroy_v2) destroy = library_.symbol<decltype(&::cublasDestroy_v2)>("cublasDestroy_v2");
  decltype(&::cublasGetVersion_v2) get_version =
      library_.symbol<decltype(&::cublasGetVersion_v2)>("cublasGetVersion_v2");
  decltype(&::cublasSetStream_v2) set_stream = library_.symbol<decltype(&::cublasSetStream_v2)>("cublasSetStream_v2");
  /// The signature of CUDA 12.5, spelled out: older toolkits lack the function.
  using GroupedGemm = cublasStatus_t (*)(cublasHandle_t, const cublasOperation_t transa[],
                                         const cublasOperation_t transb[], const int m[], const int n[], const int k[],
                                         const void* alpha, const void* const a[], cudaDataType_t a_type,
                                         const int lda[], const void* const b[], cudaDataType_t b_type, const int ldb[],
                                         const void* beta, void* const c[], cudaDataType_t c_type, const int ldc[],
                                         int group_count, const int group_size[], cublasComputeType_t);
  GroupedGemm gemm_grouped = library_.symbol<GroupedGemm>("cublasGemmGroupedBatchedEx");
  using Gemm = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                                  int k, const void* alpha, const void* a, cudaDataType_t a_type, int lda,
                                  const void* b, cudaDataType_t b_type, int ldb, const void* beta, void* c,
                                  cudaDataType_t c_type, int ldc, cublasComputeType_t, cublasGemmAlgo_t);
  Gemm gemm = library_.symbol<Gemm>("cublasGemmEx");

 private:
  cublasHandle_t handle_ = nullptr;
};

}  // namespace numcheck::kernels::cublas
