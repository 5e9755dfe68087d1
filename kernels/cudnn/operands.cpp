#include "kernels/cudnn/operands.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.hpp"
#include "kernels/contract/ports.hpp"
#include "op/output_format.hpp"

namespace numcheck::kernels::cudnn {

DataType data_type(core::Dtype dtype) {
  switch (dtype) {
    case core::Dtype::fp32:
    case core::Dtype::tf32:
      return DataType::fp32;
    case core::Dtype::bf16:
      return DataType::bf16;
    case core::Dtype::fp16:
      return DataType::fp16;
    case core::Dtype::int32:
      return DataType::int32;
    case core::Dtype::fp8_e4m3:
      return DataType::fp8_e4m3;
    case core::Dtype::fp8_e5m2:
      return DataType::fp8_e5m2;
    case core::Dtype::fp64:
    case core::Dtype::e8m0:
    case core::Dtype::fp4_e2m1:
    case core::Dtype::uint8:
      break;
  }
  throw core::InternalError(fmt::format("cuDNN binding: no tensor type for {}", core::dtype_info(dtype).name));
}

void* address_of(std::span<const PortMemory> ports, std::string_view name) {
  return first_element(&port_memory(ports, name));
}

std::string port_obstacle(const Call& call) {
  for (const op::Port& port : call.ports) {
    if (core::is_fp8(port.dtype)) {
      return fmt::format("cuDNN's normalisation has no {} output with a scale and an amax in one graph, as {} needs",
                         core::dtype_info(port.dtype).name, port.name);
    }
    if (port.elements() == 0) {
      return fmt::format("cuDNN does not accept empty tensors, and {} is empty", port.name);
    }
    if (!port.is_dense()) {
      return fmt::format("the cuDNN binding accepts only dense tensors; {} has rows of {} elements, {} apart",
                         port.name, port.cols, port.ld);
    }
  }
  return {};
}

}  // namespace numcheck::kernels::cudnn
