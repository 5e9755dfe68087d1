#include "kernels/cuda/port_access.hpp"

#include "kernels/contract/ports.hpp"

namespace numcheck::kernels::cuda {
Tensor tensor_of(std::span<const PortMemory> ports, std::string_view name) {
  const PortMemory* memory = find_port(ports, name);
  return memory == nullptr ? Tensor{} : Tensor{first_element(memory), storage_of(memory->port->dtype)};
}

void* address_of(std::span<const PortMemory> ports, std::string_view name) noexcept {
  return first_element(find_port(ports, name));
}

}  // namespace numcheck::kernels::cuda
