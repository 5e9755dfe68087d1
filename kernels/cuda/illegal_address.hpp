// The fault of kDeviceFault, planted in the device to test its containment.
#pragma once

#include "kernels/contract/backend.hpp"
#include "kernels/cuda_support/cuda_device.hpp"

namespace numcheck::kernels::cuda {

/// The algorithm, with every launch followed by a kernel on another stream that writes to an unmapped address.
/// Nothing waits for that kernel: the fault surfaces in whatever call comes next.
[[nodiscard]] Algorithm with_illegal_address(Algorithm algorithm, cuda_support::CudaDevice& device);

}  // namespace numcheck::kernels::cuda
