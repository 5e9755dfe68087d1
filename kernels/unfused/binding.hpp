// A binding of the backend `unfused`.
#pragma once

#include <string>

#include "kernels/contract/backend.hpp"
#include "kernels/contract/binding.hpp"
#include "kernels/cublas_support/library.hpp"
#include "kernels/cuda_support/cuda_device.hpp"

namespace numcheck::kernels::unfused {

struct UnfusedBinding : Binding {
  /// The only algorithm. Throws NotSupported if cuBLASLt offers none for a product. The device and the library outlive
  /// it.
  Algorithm (*algorithm)(const cublas_support::CublasLt&, cuda_support::CudaDevice&, const Call&) = nullptr;
};

}  // namespace numcheck::kernels::unfused
