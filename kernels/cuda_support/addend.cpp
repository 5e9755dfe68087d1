#include "kernels/cuda_support/addend.hpp"

#include "core/error.hpp"
#include "kernels/contract/ports.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda_support {

void copy_addend(std::span<const PortMemory> ports, cudaStream_t stream) {
  const PortMemory& c = port_memory(ports, "c");
  const PortMemory& d = port_memory(ports, "d");
  const op::Port& port = *d.port;
  if (c.port->dtype != port.dtype || c.port->ld != port.ld || c.port->batch_stride != port.batch_stride) {
    throw core::InternalError("an in-place product has a C whose format or layout differs from D's");
  }
  const auto size = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  const std::size_t pitch = static_cast<std::size_t>(port.ld) * size;
  const std::size_t width = static_cast<std::size_t>(port.cols) * size;
  if (port.elements() == 0) {
    return;
  }
  for (std::int64_t batch = 0; batch < port.batch; ++batch) {
    const std::size_t begin = static_cast<std::size_t>(batch * port.batch_stride) * size;
    check(cudaMemcpy2DAsync(d.data + port.offset_bytes + begin, pitch, c.data + c.port->offset_bytes + begin, pitch,
                            width, static_cast<std::size_t>(port.rows), cudaMemcpyDeviceToDevice, stream),
          "cudaMemcpy2DAsync");
  }
}

}  // namespace numcheck::kernels::cuda_support
