// Device memory without guards: for addresses that are only looked at.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/contract/backend.hpp"

namespace numcheck::kernels {

/// Returns the block to its memory; the memory must outlive it.
struct ReleaseBlock {
  DeviceMemory* memory;
  void operator()(std::byte* pointer) const noexcept { memory->release(pointer); }
};

using DeviceBlock = std::unique_ptr<std::byte, ReleaseBlock>;

/// 256-byte aligned; contents are indeterminate. Throws what DeviceMemory::allocate throws.
[[nodiscard]] inline DeviceBlock allocate_block(DeviceMemory& memory, std::size_t bytes) {
  return {memory.allocate(bytes), ReleaseBlock{&memory}};
}

}  // namespace numcheck::kernels
