// The backends of one CUDA device, made when first asked for.
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
  /// That of all backends of the device.
  [[nodiscard]] virtual DeviceMemory& memory() = 0;
  /// The backend of that name, made when first asked for; null for names that are none of a CUDA device. Throws
  /// core::EnvironmentError if its library is missing.
  [[nodiscard]] virtual Backend* find(std::string_view name) = 0;
  /// Versions and paths of what is in use. cuBLASLt is loaded for it; if that fails, the failure is its version.
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> libraries() = 0;
};

/// Opens device `index`; throws core::EnvironmentError. In a build without CUDA it always throws.
[[nodiscard]] std::unique_ptr<CudaBackends> open_cuda_device(int index, const ExecutorOptions& options);

}  // namespace numcheck::kernels::loader
