// Tensors in memory of this process only.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/buffer.hpp"
#include "worker/workers.hpp"

namespace numcheck::worker {

/// A separate allocation, so that a sanitizer sees every overrun.
class PlainBlock final : public SharedBlock {
 public:
  explicit PlainBlock(std::size_t bytes) : buffer_(bytes) {}
  [[nodiscard]] std::span<std::byte> bytes() override { return buffer_.span(); }

 private:
  core::Buffer<std::byte> buffer_;
};

}  // namespace numcheck::worker
