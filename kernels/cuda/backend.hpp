// The backend `cuda`: our own kernels, plain enough to read, as an independent second opinion.
#pragma once

#include <memory>

#include "kernels/backend.hpp"
#include "kernels/binding.hpp"
#include "kernels/cuda_support/cuda_device.hpp"

namespace numcheck::kernels {

/// The device must outlive the backend.
[[nodiscard]] std::unique_ptr<Backend> make_cuda_backend(CudaDevice& device, Bindings bindings);

}  // namespace numcheck::kernels
