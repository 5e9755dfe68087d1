// The backend `cuda`: our own kernels, plain enough to read, as an independent second opinion.
#pragma once

#include <memory>

#include "kernels/contract/backend.hpp"
#include "kernels/contract/binding.hpp"
#include "kernels/cuda_support/cuda_device.hpp"

namespace numcheck::kernels::cuda {

/// The device must outlive the backend.
[[nodiscard]] std::unique_ptr<Backend> make_backend(cuda_support::CudaDevice& device, Bindings bindings);

}  // namespace numcheck::kernels::cuda
