#include "kernels/harness/snapshot.hpp"

#include "kernels/harness/harness.hpp"

namespace numcheck::kernels::harness {
namespace {

/// Contents of at most this size are read along with the guards; larger ones in pieces, without a copy of the whole.
constexpr std::size_t kSmallBytes = std::size_t{256} << 10;

}  // namespace

bool Snapshot::holds(const GuardedBuffer& buffer) noexcept {
  return buffer.size() <= kSmallBytes;
}

void Snapshot::take(DeviceMemory& memory, std::span<const GuardedBuffer* const> buffers) {
  clear();
  std::size_t total = 0;
  for (const GuardedBuffer* buffer : buffers) {
    total += 2 * kGuardBytes + (holds(*buffer) ? buffer->size() : 0);
  }
  if (bytes_.size() < total) {
    bytes_ = core::Buffer<std::byte>(total);
  }
  std::span<std::byte> rest = bytes_.span();
  std::vector<DeviceRead> reads;
  const auto read = [&](const std::byte* device, std::size_t bytes) {
    const std::span<std::byte> host = rest.first(bytes);
    rest = rest.subspan(bytes);
    reads.push_back({host, device});
    return std::span<const std::byte>(host);
  };
  std::vector<Parts> parts;
  for (const GuardedBuffer* buffer : buffers) {
    const std::byte* start = buffer->data() - kGuardBytes;
    if (holds(*buffer)) {
      const auto whole = read(start, buffer->size() + 2 * kGuardBytes);
      parts.push_back({whole.first(kGuardBytes), whole.subspan(kGuardBytes, buffer->size()), whole.last(kGuardBytes)});
    } else {
      const auto before = read(start, kGuardBytes);
      parts.push_back({before, {}, read(buffer->data() + buffer->size(), kGuardBytes)});
    }
  }
  memory.download_at_sync(reads);
  parts_ = std::move(parts);
}

}  // namespace numcheck::kernels::harness
