#include "run/memory_gate.hpp"

#include <chrono>

namespace numcheck::run {

MemoryGate::Lease MemoryGate::acquire(std::uint64_t bytes, const std::function<bool()>& abandon) {
  constexpr auto kPollInterval = std::chrono::milliseconds(200);
  std::unique_lock lock(mutex_);
  while (in_flight_bytes_ != 0 && in_flight_bytes_ + bytes > budget_bytes_ && !abandon()) {
    freed_.wait_for(lock, kPollInterval);
  }
  in_flight_bytes_ += bytes;
  return {*this, bytes};
}

void MemoryGate::release(std::uint64_t bytes) noexcept {
  {
    const std::lock_guard lock(mutex_);
    in_flight_bytes_ -= bytes;
  }
  freed_.notify_all();
}

}  // namespace numcheck::run
