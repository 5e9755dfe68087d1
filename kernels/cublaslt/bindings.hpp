// What cuBLASLt computes.
#pragma once

#include "kernels/contract/binding.hpp"

namespace numcheck::kernels::cublaslt {

/// The backend computes this op only and asks for no entry points.
[[nodiscard]] const Binding& gemm();

}  // namespace numcheck::kernels::cublaslt
