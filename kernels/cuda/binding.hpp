// A binding of the backend `cuda`: our own kernels, one per op.
#pragma once

#include <string>

#include "kernels/contract/backend.hpp"
#include "kernels/contract/binding.hpp"
#include "kernels/cuda_support/cuda_device.hpp"

namespace numcheck::kernels::cuda {

struct CudaBinding : Binding {
  /// Why our kernel does not compute the case, as a sentence; empty if it does.
  std::string (*obstacle)(const Call&) = nullptr;
  /// The only algorithm. Precondition: no obstacle. The device outlives it.
  Algorithm (*algorithm)(cuda_support::CudaDevice&, const Call&) = nullptr;
};

}  // namespace numcheck::kernels::cuda
