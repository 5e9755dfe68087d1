// A device buffer between two poisoned guards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/contract/device_block.hpp"

namespace numcheck::kernels::harness {

/// `size` bytes of device memory, 256-byte aligned, with kGuardBytes of kPoisonByte before and directly after them.
class GuardedBuffer {
 public:
  GuardedBuffer(DeviceMemory& memory, std::size_t size);

  [[nodiscard]] std::byte* data() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// Fills the buffer, guards not included.
  void fill(std::uint8_t pattern);
  /// Refills the guards with poison.
  void restore_guards();

 private:
  [[nodiscard]] DeviceMemory& memory() const noexcept { return *base_.get_deleter().memory; }

  DeviceBlock base_;  ///< owned before anything that may throw
  std::size_t size_;
};

/// Where a guard was overwritten ("3 bytes after the end overwritten, the nearest at +0, now 0x3c"); empty if intact.
/// Takes the guards as they were read back.
[[nodiscard]] std::string guard_damage(std::span<const std::byte> before, std::span<const std::byte> after);

}  // namespace numcheck::kernels::harness
