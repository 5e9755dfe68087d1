// The backends of one CUDA device, each created on first use.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/contract/backend.hpp"
#include "kernels/contract/executor_options.hpp"
#include "machine/device.hpp"

namespace numcheck::kernels::loader {

class CudaBackends {
 public:
  virtual ~CudaBackends() = default;
  [[nodiscard]] virtual const machine::Device& device() const = 0;
  /// Shared by all backends of the device.
  [[nodiscard]] virtual DeviceMemory& memory() = 0;
  /// The backend with that name, created on first use; null if CUDA devices have no such backend. Throws
  /// core::EnvironmentError if its library is missing.
  [[nodiscard]] virtual Backend* find(std::string_view name) = 0;
  /// Versions and paths of the libraries in use. Loads cuBLASLt; if that fails, the error stands in for its version.
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> libraries() = 0;
};

/// Opens device `index`; throws core::EnvironmentError. In a build without CUDA it always throws.
[[nodiscard]] std::unique_ptr<CudaBackends> open_cuda_device(int index, const ExecutorOptions& options);

}  // namespace numcheck::kernels::loader
