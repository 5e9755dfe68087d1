// Limits the memory of work in flight.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace numcheck::run {

/// Thread-safe. Must outlive its leases.
class MemoryGate {
 public:
  /// `most_leases` bounds how far preparation runs ahead: beyond that many, only work that fits into kSmallWork is
  /// admitted, because memory that waits for a worker is of no use.
  explicit MemoryGate(std::uint64_t budget_bytes, std::size_t most_leases)
      : budget_bytes_(budget_bytes), most_leases_(most_leases) {}

  static constexpr std::uint64_t kSmallWork = std::uint64_t{1} << 30;
  /// Beyond it, one piece of work is prepared while another one is compared, and no third: comparing takes all threads.
  static constexpr std::uint64_t kLargeWork = std::uint64_t{8} << 30;

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

  /// Waits until `bytes` fit next to what is in flight, nothing is in flight (so that oversized
  /// requests proceed alone), or `abandon` returns true. Always takes the bytes.
  [[nodiscard]] Lease acquire(std::uint64_t bytes, const std::function<bool()>& abandon);
  /// The same without waiting; empty if it would have to.
  [[nodiscard]] std::optional<Lease> try_acquire(std::uint64_t bytes);

 private:
  void release(std::uint64_t bytes) noexcept;
  [[nodiscard]] Lease take(std::uint64_t bytes);
  [[nodiscard]] bool admits(std::uint64_t bytes) const noexcept;

  const std::uint64_t budget_bytes_;
  const std::size_t most_leases_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::uint64_t in_flight_bytes_ = 0;
  std::size_t leases_ = 0;
};

}  // namespace numcheck::run
