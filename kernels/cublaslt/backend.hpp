// The backend `cublaslt`: NVIDIA's library, loaded at run time.
#pragma once

#include <memory>
#include <string>

#include "kernels/contract/backend.hpp"
#include "kernels/cuda_support/cuda_device.hpp"

namespace numcheck::kernels::cublaslt {

/// Loads the library; throws core::EnvironmentError if it is missing or cannot be initialised. The device must outlive
/// the backend.
[[nodiscard]] std::unique_ptr<Backend> make_backend(cuda_support::CudaDevice& device, const std::string& lib_dir);

/// "13.1.0 (/usr/local/cuda/lib64/libcublasLt.so.13)" for a backend made here.
[[nodiscard]] std::string version_text(const Backend& backend);

}  // namespace numcheck::kernels::cublaslt
