#include "kernels/loader/probe.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "kernels/cuda_support/cuda_device.hpp"
#include "kernels/cuda_support/driver_files.hpp"

namespace numcheck::kernels::loader {
namespace {

DriverState broken(std::string sentence) {
  return {DriverState::Kind::broken, std::move(sentence), 0};
}

/// The runtime found no usable driver: none at all, or one that is too old.
DriverState without_driver(int driver, int runtime) {
  if (driver != 0) {
    return broken(
        fmt::format("the NVIDIA driver {} supports CUDA {}, but this program needs {}: update the driver, or build "
                    "with an older toolkit",
                    cuda_support::driver_version(), cuda_support::cuda_version_text(driver),
                    cuda_support::cuda_version_text(runtime)));
  }
  const std::string trace = cuda_support::driver_trace();
  if (trace.empty()) {
    return {DriverState::Kind::absent, "no NVIDIA driver was found", 0};
  }
  return broken(
      fmt::format("an NVIDIA driver is installed ({}) but libcuda.so.1 cannot be used: make the driver's "
                  "user-space library visible here (containers need --gpus)",
                  trace));
}

}  // namespace

DriverState probe_driver() {
  int count = 0, driver = 0, runtime = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (status == cudaSuccess && count > 0) {
    return {DriverState::Kind::works,
            fmt::format("driver {}, CUDA {}", cuda_support::driver_version(), cuda_support::cuda_version_text(driver)),
            count};
  }
  if (status == cudaErrorInsufficientDriver) {
    return without_driver(driver, runtime);
  }
  if (status == cudaErrorStubLibrary) {
    return broken("libcuda.so.1 is the toolkit's stub, not a driver: remove the stubs folder from the library path");
  }
  if (status == cudaErrorNoDevice || status == cudaSuccess) {
    return broken(fmt::format("the NVIDIA driver {} is installed but reports no device; check CUDA_VISIBLE_DEVICES",
                              cuda_support::driver_version()));
  }
  return broken(fmt::format("the NVIDIA driver cannot be initialised: {} ({})", cudaGetErrorName(status),
                            cudaGetErrorString(status)));
}

std::vector<machine::Device> cuda_devices() {
  std::vector<machine::Device> devices;
  const int count = probe_driver().devices;
  for (int index = 0; index < count; ++index) {
    try {
      devices.push_back(cuda_support::query_device(index));
    } catch (const core::Error&) {
      continue;  // a device that does not respond is counted by probe_driver, but not listed
    }
  }
  return devices;
}

bool built_with_cuda() noexcept {
  return true;
}

}  // namespace numcheck::kernels::loader
