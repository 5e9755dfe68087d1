// The backend `unfused`: attention as frameworks compute it without a fused kernel.
#pragma once

#include <memory>

#include "kernels/contract/backend.hpp"
#include "kernels/contract/executor_options.hpp"
#include "kernels/cuda_support/cuda_device.hpp"

namespace numcheck::kernels::unfused {

/// Loads cuBLASLt; throws core::EnvironmentError if it is missing or cannot be initialised. The device must outlive the
/// backend.
[[nodiscard]] std::unique_ptr<Backend> make_backend(cuda_support::CudaDevice& device, const ExecutorOptions& options);

}  // namespace numcheck::kernels::unfused
