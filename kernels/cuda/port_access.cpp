#include "kernels/cuda/port_access.hpp"

#include <algorithm>

namespace numcheck::kernels::cuda {
namespace {

const PortMemory* find(std::span<const PortMemory> ports, std::string_view name) noexcept {
  const auto found = std::ranges::find_if(ports, [name](const PortMemory& p) { return p.port->name == name; });
  return found == ports.end() ? nullptr : &*found;
}

}  // namespace

Tensor tensor_of(std::span<const PortMemory> ports, std::string_view name) {
  const PortMemory* memory = find(ports, name);
  return memory == nullptr ? Tensor{}
                           : Tensor{memory->data + memory->port->offset_bytes, storage_of(memory->port->dtype)};
}

void* address_of(std::span<const PortMemory> ports, std::string_view name) noexcept {
  const PortMemory* memory = find(ports, name);
  return memory == nullptr ? nullptr : memory->data + memory->port->offset_bytes;
}

}  // namespace numcheck::kernels::cuda
