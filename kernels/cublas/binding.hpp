// A binding of the backend `cublas`.
#pragma once

#include <string>
#include <vector>

#include "kernels/contract/backend.hpp"
#include "kernels/contract/binding.hpp"
#include "kernels/cublas/library.hpp"
#include "kernels/cuda_support/cuda_device.hpp"

namespace numcheck::kernels::cublas {

struct CublasBinding : Binding {
  /// Why the library has no such function, as a sentence; empty if it has. Does not need the library.
  std::string (*obstacle)(const Call&) = nullptr;
  /// As many as the case asks for. Precondition: no obstacle. The device and the library outlive them.
  std::vector<Algorithm> (*algorithms)(const Cublas&, cuda_support::CudaDevice&, const Call&) = nullptr;
};

}  // namespace numcheck::kernels::cublas
