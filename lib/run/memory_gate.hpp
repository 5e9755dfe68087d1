// Bounds the memory of work that is in flight.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace numcheck::run {

class MemoryGate {
 public:
  explicit MemoryGate(std::uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  /// Waits until `bytes` fit into the budget beside what is in flight, or nothing is (then they are let through,
  /// however many), or `abandon` says so; takes them in every case.
  void acquire(std::uint64_t bytes, const std::function<bool()>& abandon);
  void release(std::uint64_t bytes);

 private:
  const std::uint64_t budget_bytes_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::uint64_t in_flight_bytes_ = 0;
};

}  // namespace numcheck::run
