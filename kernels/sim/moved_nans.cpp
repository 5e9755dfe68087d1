#include "kernels/sim/moved_nans.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/codec.hpp"

namespace numcheck::kernels::sim {
namespace {

std::byte* element(const PortMemory& memory, std::size_t i) {
  return memory.data + memory.port->offset_bytes +
         i * static_cast<std::size_t>(core::dtype_info(memory.port->dtype).storage_bytes);
}

}  // namespace

void move_nans(std::span<const PortMemory> ports, std::string_view from, std::string_view to,
               const std::function<std::size_t(std::size_t)>& source) {
  const PortMemory& in = port_memory(ports, from);
  const PortMemory& out = port_memory(ports, to);
  const auto bytes = static_cast<std::size_t>(core::dtype_info(out.port->dtype).storage_bytes);
  const auto is_nan = [bytes](const std::byte* at, core::Dtype dtype) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, at, bytes);
    return std::isnan(core::decode(bits, dtype));
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(out.port->elements()); ++i) {
    const std::byte* moved = element(in, source(i));
    if (is_nan(element(out, i), out.port->dtype) && is_nan(moved, in.port->dtype)) {
      std::memcpy(element(out, i), moved, bytes);
    }
  }
}

}  // namespace numcheck::kernels::sim
