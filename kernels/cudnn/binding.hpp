// A binding of the backend `cudnn`.
#pragma once

#include <string>
#include <vector>

#include "kernels/contract/backend.hpp"
#include "kernels/contract/binding.hpp"
#include "kernels/cuda_support/cuda_device.hpp"
#include "kernels/cudnn/library.hpp"

namespace numcheck::kernels::cudnn {

/// What a binding works with; all of it outlives every algorithm.
struct Context {
  const Library& library;
  ContextHandle handle;
  cuda_support::CudaDevice& device;
};

struct CudnnBinding : Binding {
  /// Why the library cannot compute the case, as far as is known without calling it; empty if it may be called.
  std::string (*obstacle)(const Call&) = nullptr;
  /// As many as the case asks for. Precondition: no obstacle. Throws NotSupported if the library refuses.
  std::vector<Algorithm> (*algorithms)(const Context&, const Call&) = nullptr;
};

}  // namespace numcheck::kernels::cudnn
