// Is there an NVIDIA driver, and does it work? Available in every build, also without CUDA.
#pragma once

#include <string>
#include <vector>

#include "machine/device.hpp"

namespace numcheck::kernels::loader {

/// What `--device auto` rests on.
struct DriverState {
  enum class Kind {
    absent,  ///< no driver library and no device node: this machine has no NVIDIA driver
    broken,  ///< something of a driver is there, but it gives no device
    works,
  } kind = Kind::absent;
  std::string sentence;  ///< what was found; for `broken` also what would help
  int devices = 0;
};

/// Never throws; never initialises more than the runtime's device count.
[[nodiscard]] DriverState probe_driver();

/// One line per device for `list devices` and `doctor`: every device that answers; empty if the driver does not work.
[[nodiscard]] std::vector<machine::Device> cuda_devices();

/// True if this program was built with the CUDA backends.
[[nodiscard]] bool built_with_cuda() noexcept;

}  // namespace numcheck::kernels::loader
