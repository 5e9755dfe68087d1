#include "run/memory_gate.hpp"

#include <chrono>

namespace numcheck::run {

bool MemoryGate::admits(std::uint64_t bytes) const noexcept {
  const std::uint64_t total = in_flight_bytes_ + bytes;
  const bool is_ahead = leases_ >= most_leases_ && total > kSmallWork;
  const bool is_third = leases_ >= 2 && total > kLargeWork;
  return leases_ == 0 || (total <= budget_bytes_ && !is_ahead && !is_third);
}

MemoryGate::Lease MemoryGate::acquire(std::uint64_t bytes, const std::function<bool()>& abandon) {
  constexpr auto kPollInterval = std::chrono::milliseconds(200);
  std::unique_lock lock(mutex_);
  while (!admits(bytes) && !abandon()) {
    freed_.wait_for(lock, kPollInterval);
  }
  return take(bytes);
}

std::optional<MemoryGate::Lease> MemoryGate::try_acquire(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  return admits(bytes) ? std::optional(take(bytes)) : std::nullopt;
}

MemoryGate::Lease MemoryGate::take(std::uint64_t bytes) {
  in_flight_bytes_ += bytes;
  ++leases_;
  return {*this, bytes};
}

void MemoryGate::release(std::uint64_t bytes) noexcept {
  {
    const std::lock_guard lock(mutex_);
    in_flight_bytes_ -= bytes;
    --leases_;
  }
  freed_.notify_all();
}

}  // namespace numcheck::run
