// A binding of the backend `transformer_engine`: one call of the library, or a few, per op.
#pragma once

#include <string>

#include "kernels/contract/backend.hpp"
#include "kernels/contract/binding.hpp"
#include "kernels/cuda_support/cuda_device.hpp"
#include "kernels/transformer_engine/library.hpp"
#include "machine/device.hpp"

namespace numcheck::kernels::transformer_engine {

/// What a binding works with; library and device outlive every algorithm.
struct Context {
  const Library& library;
  cuda_support::CudaDevice* device = nullptr;  ///< not needed for obstacles
  machine::Device info;
};

struct TeBinding : Binding {
  /// Why the library cannot compute the case, as far as is known without calling it; empty if it may be called.
  std::string (*obstacle)(const Context&, const Call&) = nullptr;
  /// The only algorithm. Precondition: no obstacle. Throws NotSupported if the library refuses.
  Algorithm (*algorithm)(const Context&, const Call&) = nullptr;
};

}  // namespace numcheck::kernels::transformer_engine
