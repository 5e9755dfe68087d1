// Finds the ports of a call by name.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "kernels/contract/backend.hpp"

namespace numcheck::kernels {

/// The port with that name, or null.
[[nodiscard]] inline const PortMemory* find_port(std::span<const PortMemory> ports, std::string_view name) noexcept {
  const auto found = std::ranges::find_if(ports, [name](const PortMemory& p) { return p.port->name == name; });
  return found == ports.end() ? nullptr : &*found;
}

/// The port with that name; throws core::InternalError if there is none.
[[nodiscard]] inline const PortMemory& port_memory(std::span<const PortMemory> ports, std::string_view name) {
  const PortMemory* found = find_port(ports, name);
  if (found == nullptr) {
    throw core::InternalError("no port is named " + std::string(name));
  }
  return *found;
}

/// The first element of a port; null if `memory` is null.
[[nodiscard]] inline std::byte* first_element(const PortMemory* memory) noexcept {
  return memory == nullptr ? nullptr : memory->data + memory->port->offset_bytes;
}

}  // namespace numcheck::kernels
