// Ports in cuDNN's terms.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kernels/contract/backend.hpp"
#include "kernels/cudnn/interface.hpp"

namespace numcheck::kernels::cudnn {

/// Storage format in the library's terms; throws InternalError for one that no binding passes.
[[nodiscard]] DataType data_type(core::Dtype dtype);

/// First element of the port; throws InternalError if the case has no such port.
[[nodiscard]] void* address_of(std::span<const PortMemory> ports, std::string_view name);

/// Why the library does not accept the ports as stored: padded, without elements or in FP8; empty if it does.
[[nodiscard]] std::string port_obstacle(const Call& call);

}  // namespace numcheck::kernels::cudnn
