// Limits the memory of work in flight.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
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
  static constexpr std::uint64_t kLargeWork = std::uint64_t{4} << 30;

  /// Of work: what it holds, and what it may need besides, but never at the same time as other work.
  struct Demand {
    std::uint64_t bytes = 0;
    std::uint64_t besides = 0;
  };

  /// A share of the budget, returned on destruction.
  class Lease {
   public:
    Lease(MemoryGate& gate, const Demand& demand) noexcept : gate_(&gate), demand_(demand) {}
    Lease(Lease&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)), demand_(other.demand_) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (gate_ != nullptr) {
        gate_->release(demand_);
      }
    }

   private:
    MemoryGate* gate_;
    Demand demand_;
  };

  /// Waits until the demand fits next to what is in flight, nothing is in flight (so that oversized
  /// requests proceed alone), or `abandon` returns true. Always takes it.
  [[nodiscard]] Lease acquire(const Demand& demand, const std::function<bool()>& abandon);
  /// The same without waiting; empty if it would have to.
  [[nodiscard]] std::optional<Lease> try_acquire(const Demand& demand);

 private:
  void release(const Demand& demand) noexcept;
  [[nodiscard]] Lease take(const Demand& demand);
  [[nodiscard]] bool admits(const Demand& demand) const noexcept;

  const std::uint64_t budget_bytes_;
  const std::size_t most_leases_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::uint64_t in_flight_bytes_ = 0;
  std::multiset<std::uint64_t> besides_;  ///< of what is in flight
  std::size_t leases_ = 0;
};

}  // namespace numcheck::run
