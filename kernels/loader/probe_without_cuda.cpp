#include "kernels/loader/probe.hpp"

#include "kernels/cuda_support/driver_files.hpp"

namespace numcheck::kernels::loader {

DriverState probe_driver() {
  const std::string trace = cuda_support::driver_trace();
  if (trace.empty()) {
    return {DriverState::Kind::absent, "no NVIDIA driver was found (and te-numcheck was built without CUDA)", 0};
  }
  return {DriverState::Kind::broken,
          "an NVIDIA driver is installed (" + trace +
              ") but te-numcheck was built without CUDA; rebuild with TE_NUMCHECK_CUDA=ON, or use --device sim:sm_90",
          0};
}

std::vector<machine::Device> cuda_devices() {
  return {};
}

bool built_with_cuda() noexcept {
  return false;
}

}  // namespace numcheck::kernels::loader
