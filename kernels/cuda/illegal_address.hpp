// The fault of kDeviceFault, planted in the device to try its containment.
#pragma once

#include "kernels/contract/backend.hpp"
#include "kernels/cuda_support/cuda_device.hpp"

namespace numcheck::kernels::cuda {

/// The algorithm, after each launch of which an own kernel, on a stream of its own, writes to an address that nothing
/// is mapped at. Nobody waits for that kernel: the fault surfaces in whatever call comes next.
[[nodiscard]] Algorithm with_illegal_address(Algorithm algorithm, cuda_support::CudaDevice& device);

}  // namespace numcheck::kernels::cuda
