// Products that accumulate into D in place.
#pragma once

#include <span>

#include <cuda_runtime_api.h>

#include "kernels/contract/backend.hpp"

namespace numcheck::kernels::cuda_support {

/// Enqueues D = C, element by element, so that a product may add to it. Precondition: ports "c" and "d" have the same
/// format and layout. Throws CudaError.
void copy_addend(std::span<const PortMemory> ports, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda_support
