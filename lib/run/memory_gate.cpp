#include "run/memory_gate.hpp"

#include <algorithm>
#include <chrono>

namespace numcheck::run {

bool MemoryGate::admits(const Demand& demand) const noexcept {
  const std::uint64_t total = in_flight_bytes_ + demand.bytes;
  const std::uint64_t besides = std::max(demand.besides, besides_.empty() ? 0 : *besides_.rbegin());
  const bool is_ahead = leases_ >= most_leases_ && total > kSmallWork;
  const bool is_third = leases_ >= 2 && total > kLargeWork;
  return leases_ == 0 || (total + besides <= budget_bytes_ && !is_ahead && !is_third);
}

MemoryGate::Lease MemoryGate::acquire(const Demand& demand, const std::function<bool()>& abandon) {
  constexpr auto kPollInterval = std::chrono::milliseconds(200);
  std::unique_lock lock(mutex_);
  while (!admits(demand) && !abandon()) {
    freed_.wait_for(lock, kPollInterval);
  }
  return take(demand);
}

std::optional<MemoryGate::Lease> MemoryGate::try_acquire(const Demand& demand) {
  const std::lock_guard lock(mutex_);
  return admits(demand) ? std::optional(take(demand)) : std::nullopt;
}

MemoryGate::Lease MemoryGate::take(const Demand& demand) {
  besides_.insert(demand.besides);  // before anything counts: there may be no memory for it
  in_flight_bytes_ += demand.bytes;
  ++leases_;
  return {*this, demand};
}

void MemoryGate::release(const Demand& demand) noexcept {
  {
    const std::lock_guard lock(mutex_);
    in_flight_bytes_ -= demand.bytes;
    besides_.erase(besides_.find(demand.besides));
    --leases_;
  }
  freed_.notify_all();
}

}  // namespace numcheck::run
