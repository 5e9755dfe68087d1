// What a launch left in device memory: guards, and the contents of small buffers.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/buffer.hpp"
#include "kernels/contract/backend.hpp"
#include "kernels/harness/guarded_buffer.hpp"

namespace numcheck::kernels::harness {

/// Read in the order of the device's work, as a framework would read it, without a wait of its own: waits, not bytes,
/// are what a small case costs, and workers that share a GPU wait for their turn each time.
class Snapshot {
 public:
  /// Whether a snapshot has the contents of this buffer, not only its guards.
  [[nodiscard]] static bool holds(const GuardedBuffer& buffer) noexcept;

  /// Reads the guards of all buffers, and the contents of those that it holds; they are there once `memory` has been
  /// synchronized.
  void take(DeviceMemory& memory, std::span<const GuardedBuffer* const> buffers);
  /// Forgets what was read; to be called when device memory changes.
  void clear() noexcept { parts_.clear(); }

  [[nodiscard]] std::span<const std::byte> guard_before(std::size_t buffer) const { return parts_[buffer].before; }
  [[nodiscard]] std::span<const std::byte> guard_after(std::size_t buffer) const { return parts_[buffer].after; }
  /// Empty if there is no snapshot or it does not hold the buffer.
  [[nodiscard]] std::span<const std::byte> contents(std::size_t buffer) const noexcept {
    return buffer < parts_.size() ? parts_[buffer].contents : std::span<const std::byte>();
  }

 private:
  struct Parts {
    std::span<const std::byte> before, contents, after;
  };

  core::Buffer<std::byte> bytes_;
  std::vector<Parts> parts_;  ///< parallel to the buffers; empty: no snapshot
};

}  // namespace numcheck::kernels::harness
