// Traces of an NVIDIA driver in the file system.
#pragma once

#include <string>

namespace numcheck::kernels::cuda_support {

/// "/dev/nvidiactl", "libcuda.so.1" or whatever else shows that a driver is installed; empty if nothing does.
[[nodiscard]] std::string driver_trace();

/// "580.65.06" from NVML or /proc/driver/nvidia/version; empty if neither has it.
[[nodiscard]] std::string driver_version();

}  // namespace numcheck::kernels::cuda_support
