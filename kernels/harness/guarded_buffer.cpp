#include "kernels/harness/guarded_buffer.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "kernels/harness/harness.hpp"

namespace numcheck::kernels::harness {
namespace {

std::string damage(std::span<const std::byte> guard, bool before) {
  const auto is_damaged = [](std::byte b) { return b != std::byte{kPoisonByte}; };
  const auto count = std::ranges::count_if(guard, is_damaged);
  if (count == 0) {
    return {};
  }
  // The byte nearest to the buffer says most: an overrun by one element starts there.
  const auto index = before ? std::find_if(guard.rbegin(), guard.rend(), is_damaged).base() - guard.begin() - 1
                            : std::ranges::find_if(guard, is_damaged) - guard.begin();
  const auto distance = before ? index - static_cast<std::ptrdiff_t>(kGuardBytes) : index;
  return fmt::format("{} byte{} {} overwritten, the nearest at {:+d}, now 0x{:02x}", count, count == 1 ? "" : "s",
                     before ? "before the start" : "after the end", distance,
                     std::to_integer<unsigned>(guard[static_cast<std::size_t>(index)]));
}

}  // namespace

GuardedBuffer::GuardedBuffer(DeviceMemory& memory, std::size_t size)
    : base_(allocate_block(memory, size + 2 * kGuardBytes)), size_(size) {
  restore_guards();
}

std::byte* GuardedBuffer::data() const noexcept {
  return base_.get() + kGuardBytes;
}

void GuardedBuffer::fill(std::uint8_t pattern) {
  if (size_ != 0) {
    memory().fill(data(), pattern, size_);
  }
}

void GuardedBuffer::restore_guards() {
  memory().fill(base_.get(), kPoisonByte, kGuardBytes);
  memory().fill(data() + size_, kPoisonByte, kGuardBytes);
}

std::string guard_damage(std::span<const std::byte> before, std::span<const std::byte> after) {
  std::string text = damage(before, true);
  return text.empty() ? damage(after, false) : text;
}

}  // namespace numcheck::kernels::harness
