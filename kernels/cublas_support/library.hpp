// The functions of cuBLASLt that this program calls, bound when the library is loaded.
#pragma once

#include <string>

#include <cublasLt.h>

#include "kernels/cuda_support/library.hpp"

namespace numcheck::kernels::cublas_support {

/// A loaded cuBLASLt with one handle. Members have the names and signatures of cublasLt.h.
class CublasLt {
 public:
  /// Loads the library and creates the handle on the current device. Throws core::EnvironmentError or CublasError.
  explicit CublasLt(const std::string& lib_dir);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  [[nodiscard]] cublasLtHandle_t handle() const noexcept { return handle_; }
  [[nodiscard]] const std::string& path() const noexcept { return library_.path(); }
  /// "13.1.0".
  [[nodiscard]] std::string version() const;

 private:
  cuda_support::SharedLibrary library_;

 public:
  decltype(&::cublasLtCreate) create = library_.symbol<decltype(&::cublasLtCreate)>("cublasLtCreate");
  decltype(&::cublasLtDestroy) destroy = library_.symbol<decltype(&::cublasLtDestroy)>("cublasLtDestroy");
  decltype(&::cublasLtGetVersion) get_version = library_.symbol<decltype(&::cublasLtGetVersion)>("cublasLtGetVersion");
  decltype(&::cublasLtMatmulDescCreate) desc_create =
      library_.symbol<decltype(&::cublasLtMatmulDescCreate)>("cublasLtMatmulDescCreate");
  decltype(&::cublasLtMatmulDescDestroy) desc_destroy =
      library_.symbol<decltype(&::cublasLtMatmulDescDestroy)>("cublasLtMatmulDescDestroy");
  decltype(&::cublasLtMatmulDescSetAttribute) desc_set =
      library_.symbol<decltype(&::cublasLtMatmulDescSetAttribute)>("cublasLtMatmulDescSetAttribute");
  decltype(&::cublasLtMatrixLayoutCreate) layout_create =
      library_.symbol<decltype(&::cublasLtMatrixLayoutCreate)>("cublasLtMatrixLayoutCreate");
  decltype(&::cublasLtMatrixLayoutDestroy) layout_destroy =
      library_.symbol<decltype(&::cublasLtMatrixLayoutDestroy)>("cublasLtMatrixLayoutDestroy");
  decltype(&::cublasLtMatrixLayoutSetAttribute) layout_set =
      library_.symbol<decltype(&::cublasLtMatrixLayoutSetAttribute)>("cublasLtMatrixLayoutSetAttribute");
  decltype(&::cublasLtMatmulPreferenceCreate) preference_create =
      library_.symbol<decltype(&::cublasLtMatmulPreferenceCreate)>("cublasLtMatmulPreferenceCreate");
  decltype(&::cublasLtMatmulPreferenceDestroy) preference_destroy =
      library_.symbol<decltype(&::cublasLtMatmulPreferenceDestroy)>("cublasLtMatmulPreferenceDestroy");
  decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set =
      library_.symbol<decltype(&::cublasLtMatmulPreferenceSetAttribute)>("cublasLtMatmulPreferenceSetAttribute");
  decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic =
      library_.symbol<decltype(&::cublasLtMatmulAlgoGetHeuristic)>("cublasLtMatmulAlgoGetHeuristic");
  decltype(&::cublasLtMatmulAlgoConfigGetAttribute) config_get =
      library_.symbol<decltype(&::cublasLtMatmulAlgoConfigGetAttribute)>("cublasLtMatmulAlgoConfigGetAttribute");
  decltype(&::cublasLtMatmulAlgoCapGetAttribute) capability_get =
      library_.symbol<decltype(&::cublasLtMatmulAlgoCapGetAttribute)>("cublasLtMatmulAlgoCapGetAttribute");
  decltype(&::cublasLtMatmul) matmul = library_.symbol<decltype(&::cublasLtMatmul)>("cublasLtMatmul");

 private:
  cublasLtHandle_t handle_ = nullptr;
};

}  // namespace numcheck::kernels::cublas_support
