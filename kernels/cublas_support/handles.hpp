// RAII for cuBLASLt's descriptors.
#pragma once

#include <memory>
#include <string_view>

#include <cublasLt.h>

#include "kernels/cublas_support/library.hpp"
#include "kernels/cuda_support/check.hpp"
#include "op/op.hpp"

namespace numcheck::kernels::cublas_support {

/// A cublasLtMatmulDesc_t.
class MatmulDesc {
 public:
  MatmulDesc(const CublasLt& lt, cublasComputeType_t compute, cudaDataType_t scale);
  ~MatmulDesc() { lt_.desc_destroy(desc_); }
  MatmulDesc(const MatmulDesc&) = delete;
  MatmulDesc& operator=(const MatmulDesc&) = delete;

  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    cuda_support::check(lt_.desc_set(desc_, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }
  [[nodiscard]] cublasLtMatmulDesc_t get() const noexcept { return desc_; }

 private:
  const CublasLt& lt_;
  cublasLtMatmulDesc_t desc_ = nullptr;
};

/// A column-major, possibly batched cublasLtMatrixLayout_t.
class MatrixLayout {
 public:
  MatrixLayout(const CublasLt& lt, cudaDataType_t type, std::int64_t rows, std::int64_t cols, std::int64_t ld,
               std::int64_t batch, std::int64_t batch_stride);
  ~MatrixLayout() { lt_.layout_destroy(layout_); }
  MatrixLayout(const MatrixLayout&) = delete;
  MatrixLayout& operator=(const MatrixLayout&) = delete;
  [[nodiscard]] cublasLtMatrixLayout_t get() const noexcept { return layout_; }

 private:
  const CublasLt& lt_;
  cublasLtMatrixLayout_t layout_ = nullptr;
};

/// A cublasLtMatmulPreference_t.
class MatmulPreference {
 public:
  explicit MatmulPreference(const CublasLt& lt);
  ~MatmulPreference() { lt_.preference_destroy(preference_); }
  MatmulPreference(const MatmulPreference&) = delete;
  MatmulPreference& operator=(const MatmulPreference&) = delete;

  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    cuda_support::check(lt_.preference_set(preference_, attribute, &value, sizeof value),
                        "cublasLtMatmulPreferenceSetAttribute");
  }
  [[nodiscard]] cublasLtMatmulPreference_t get() const noexcept { return preference_; }

 private:
  const CublasLt& lt_;
  cublasLtMatmulPreference_t preference_ = nullptr;
};

}  // namespace numcheck::kernels::cublas_support
