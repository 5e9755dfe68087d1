#include "kernels/cuda_support/check.hpp"

#include <filesystem>
#include <string>

#include <fmt/format.h>

namespace numcheck::kernels::cuda_support {
namespace {

std::string place(const std::source_location& where) {
  return fmt::format("{}:{}", std::filesystem::path(where.file_name()).filename().string(), where.line());
}

}  // namespace

CudaError::CudaError(cudaError_t status, std::string_view call, const std::source_location& where)
    : EnvironmentError(fmt::format("{} failed: {} ({}) at {}", call, cudaGetErrorName(status),
                                   cudaGetErrorString(status), place(where))),
      status_(status) {}

CublasError::CublasError(cublasStatus_t status, std::string_view call, const std::source_location& where)
    : EnvironmentError(fmt::format("{} failed: {} at {}", call, cublas_status_name(status), place(where))),
      status_(status) {}

std::string cublas_status_name(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR:
      return "CUBLAS_STATUS_LICENSE_ERROR";
  }
  return fmt::format("cuBLAS status {}", static_cast<int>(status));
}

void check(cudaError_t status, std::string_view call, const std::source_location& where) {
  if (status != cudaSuccess) {
    cudaGetLastError();  // a non-sticky error must not be reported again by the next check
    throw CudaError(status, call, where);
  }
}

void check(cublasStatus_t status, std::string_view call, const std::source_location& where) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw CublasError(status, call, where);
  }
}

}  // namespace numcheck::kernels::cuda_support
