#include "kernels/cublas_support/handles.hpp"

namespace numcheck::kernels::cublas_support {

MatmulDesc::MatmulDesc(const CublasLt& lt, cublasComputeType_t compute, cudaDataType_t scale) : lt_(lt) {
  cuda_support::check(lt_.desc_create(&desc_, compute, scale), "cublasLtMatmulDescCreate");
}

MatrixLayout::MatrixLayout(const CublasLt& lt, cudaDataType_t type, std::int64_t rows, std::int64_t cols,
                           std::int64_t ld, std::int64_t batch, std::int64_t batch_stride)
    : lt_(lt) {
  cuda_support::check(
      lt_.layout_create(&layout_, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols), ld),
      "cublasLtMatrixLayoutCreate");
  if (batch > 1) {
    const auto count = static_cast<std::int32_t>(batch);
    cuda_support::check(lt_.layout_set(layout_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                        "cublasLtMatrixLayoutSetAttribute");
    cuda_support::check(
        lt_.layout_set(layout_, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch_stride, sizeof batch_stride),
        "cublasLtMatrixLayoutSetAttribute");
  }
}

MatmulPreference::MatmulPreference(const CublasLt& lt) : lt_(lt) {
  cuda_support::check(lt_.preference_create(&preference_), "cublasLtMatmulPreferenceCreate");
}

}  // namespace numcheck::kernels::cublas_support
