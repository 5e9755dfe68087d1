// The backend `cudnn`: NVIDIA's library, loaded at run time.
#pragma once

#include <memory>
#include <string>

#include "kernels/contract/backend.hpp"
#include "kernels/contract/executor_options.hpp"
#include "kernels/cuda_support/cuda_device.hpp"

namespace numcheck::kernels::cudnn {

/// The library is loaded with the first case. If it is missing or cannot be initialised, every case is unsupported,
/// with a sentence that says what would help. The device must outlive the backend.
[[nodiscard]] std::unique_ptr<Backend> make_backend(cuda_support::CudaDevice& device, const ExecutorOptions& options);

/// "9.19.0 (path)" for the library that would be used; empty if there is none.
[[nodiscard]] std::string version_text(const ExecutorOptions& options);

}  // namespace numcheck::kernels::cudnn
