// A binding of the backend `cuda`: own kernels, one per op.
#pragma once

#include <string>

#include "kernels/backend.hpp"
#include "kernels/binding.hpp"
#include "kernels/cuda_support/cuda_device.hpp"

namespace numcheck::kernels {

struct CudaBinding : Binding {
  /// Why the own kernel does not compute the case, as a sentence; empty if it does.
  std::string (*obstacle)(const Call&) = nullptr;
  /// The one algorithm; called without obstacle only. The device outlives it.
  Algorithm (*algorithm)(CudaDevice&, const Call&) = nullptr;
};

}  // namespace numcheck::kernels
