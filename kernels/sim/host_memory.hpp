// Memory of a simulated device: plain host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/contract/backend.hpp"

namespace numcheck::kernels::sim {

class HostMemory final : public DeviceMemory {
 public:
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* pointer) noexcept override;
  void upload(std::byte* device, std::span<const std::byte> host) override;
  void download(std::span<std::byte> host, const std::byte* device) override;
  void fill(std::byte* device, std::uint8_t pattern, std::size_t bytes) override;
  void synchronize() override {}
};

}  // namespace numcheck::kernels::sim
