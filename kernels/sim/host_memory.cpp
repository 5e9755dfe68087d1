#include "kernels/sim/host_memory.hpp"

#include <cstring>
#include <new>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/strings.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr std::align_val_t kAlignment{256};

}  // namespace

std::byte* HostMemory::allocate(std::size_t bytes) {
  void* pointer = ::operator new(bytes == 0 ? 1 : bytes, kAlignment, std::nothrow);
  if (pointer == nullptr) {
    throw core::EnvironmentError(
        fmt::format("the simulated device cannot allocate {} of host memory", core::human_bytes(bytes)));
  }
  return static_cast<std::byte*>(pointer);
}

void HostMemory::release(std::byte* pointer) noexcept {
  ::operator delete(pointer, kAlignment);
}

void HostMemory::upload(std::byte* device, std::span<const std::byte> host) {
  if (!host.empty()) {
    std::memcpy(device, host.data(), host.size());
  }
}

void HostMemory::download(std::span<std::byte> host, const std::byte* device) {
  if (!host.empty()) {
    std::memcpy(host.data(), device, host.size());
  }
}

void HostMemory::fill(std::byte* device, std::uint8_t pattern, std::size_t bytes) {
  if (bytes != 0) {
    std::memset(device, pattern, bytes);
  }
}

}  // namespace numcheck::kernels::sim
