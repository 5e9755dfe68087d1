// Errors of the CUDA runtime and of cuBLAS, as exceptions that say which call failed and where.
#pragma once

#include <source_location>
#include <string_view>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "core/error.hpp"

namespace numcheck::kernels::cuda_support {

/// A CUDA runtime call failed. The message has the call, the status name, CUDA's description and the source location.
class CudaError : public core::EnvironmentError {
 public:
  CudaError(cudaError_t status, std::string_view call, const std::source_location& where);
  [[nodiscard]] cudaError_t status() const noexcept { return status_; }

 private:
  cudaError_t status_;
};

/// A cuBLAS or cuBLASLt call failed.
class CublasError : public core::EnvironmentError {
 public:
  CublasError(cublasStatus_t status, std::string_view call, const std::source_location& where);
  [[nodiscard]] cublasStatus_t status() const noexcept { return status_; }

 private:
  cublasStatus_t status_;
};

/// "CUBLAS_STATUS_NOT_SUPPORTED"; "cuBLAS status 99" for one that this build does not know.
[[nodiscard]] std::string cublas_status_name(cublasStatus_t status);

/// Throws CudaError unless `status` is cudaSuccess.
void check(cudaError_t status, std::string_view call,
           const std::source_location& where = std::source_location::current());

/// Throws CublasError unless `status` is CUBLAS_STATUS_SUCCESS.
void check(cublasStatus_t status, std::string_view call,
           const std::source_location& where = std::source_location::current());

}  // namespace numcheck::kernels::cuda_support
