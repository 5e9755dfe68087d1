// The backend `cublas`: NVIDIA's library, loaded at run time when a case first needs it.
#pragma once

#include <memory>

#include "kernels/contract/backend.hpp"
#include "kernels/contract/executor_options.hpp"
#include "kernels/cuda_support/cuda_device.hpp"

namespace numcheck::kernels::cublas {

/// The device must outlive the backend. Without the library, cases are unsupported with the reason.
[[nodiscard]] std::unique_ptr<Backend> make_backend(cuda_support::CudaDevice& device, const ExecutorOptions& options);

}  // namespace numcheck::kernels::cublas
