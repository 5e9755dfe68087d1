// Whether there is an NVIDIA driver and whether it works. Available in every build, even without CUDA.
#pragma once

#include <string>
#include <vector>

#include "machine/device.hpp"

namespace numcheck::kernels::loader {

/// What `--device auto` goes by.
struct DriverState {
  enum class Kind {
    absent,  ///< no driver library and no device node: this machine has no NVIDIA driver
    broken,  ///< there are traces of a driver, but no usable device
    works,
  } kind = Kind::absent;
  std::string sentence;  ///< what was found; for `broken`, also what to do
  int devices = 0;
};

/// Never throws; initialises no more than counting devices needs.
[[nodiscard]] DriverState probe_driver();

/// Every device that responds, for `list devices` and `doctor`; empty if the driver does not work.
[[nodiscard]] std::vector<machine::Device> cuda_devices();

/// True if this program was built with the CUDA backends.
[[nodiscard]] bool built_with_cuda() noexcept;

}  // namespace numcheck::kernels::loader
