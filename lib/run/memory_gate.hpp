// Limits the memory of work in flight.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

namespace numcheck::run {

/// Thread-safe. Must outlive its leases.
class MemoryGate {
 public:
  explicit MemoryGate(std::uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  /// A share of the budget, returned on destruction.
  class Lease {
   public:
    Lease(MemoryGate& gate, std::uint64_t bytes) noexcept : gate_(&gate), bytes_(bytes) {}
    Lease(Lease&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)), bytes_(other.bytes_) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (gate_ != nullptr) {
        gate_->release(bytes_);
      }
    }

   private:
    MemoryGate* gate_;
    std::uint64_t bytes_;
  };

  /// Waits until `bytes` fit into the budget next to what is in flight, nothing is in flight (so that oversized
  /// requests proceed alone), or `abandon` returns true. Always takes the bytes.
  [[nodiscard]] Lease acquire(std::uint64_t bytes, const std::function<bool()>& abandon);

 private:
  void release(std::uint64_t bytes) noexcept;

  const std::uint64_t budget_bytes_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::uint64_t in_flight_bytes_ = 0;
};

}  // namespace numcheck::run
