// `gemm` as cuBLASLt's binding for the catalog. The backend computes this op only and asks for no entry points.
#pragma once

#include "kernels/binding.hpp"

namespace numcheck::kernels {

[[nodiscard]] inline const Binding& cublaslt_gemm() {
  static const Binding binding{"cublaslt", "gemm"};
  return binding;
}

}  // namespace numcheck::kernels
