// What cuBLASLt computes.
#pragma once

#include "kernels/contract/binding.hpp"

namespace numcheck::kernels::cublaslt {

/// The backend's only op; it needs no entry points.
[[nodiscard]] const Binding& gemm();

}  // namespace numcheck::kernels::cublaslt
