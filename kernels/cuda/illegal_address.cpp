#include "kernels/cuda/illegal_address.hpp"

#include <memory>
#include <utility>

#include "kernels/cuda/illegal_address_kernel.hpp"
#include "kernels/cuda_support/check.hpp"
#include "kernels/cuda_support/stream.hpp"

namespace numcheck::kernels::cuda {

Algorithm with_illegal_address(Algorithm algorithm, cuda_support::CudaDevice& device) {
  device.use();
  const auto stream = std::make_shared<cuda_support::Stream>();
  algorithm.launch = [stream, launch = std::move(algorithm.launch)](std::span<const PortMemory> ports,
                                                                    std::byte* workspace) {
    DeviceSeconds seconds = launch(ports, workspace);
    cuda_support::check(launch_illegal_write(stream->get()), "planted illegal write");
    return seconds;
  };
  return algorithm;
}

}  // namespace numcheck::kernels::cuda
