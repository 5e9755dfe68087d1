// Starts and stops a pool's worker processes. A worker occupies a seat; there are WorkerOptions::max_workers.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "worker/lane.hpp"
#include "worker/worker_process.hpp"

namespace numcheck::worker {

/// Guarded by the pool's mutex, which callers must hold. Calls that take the lock release it while a process starts or
/// ends.
class WorkerRoster {
 public:
  using Lock = std::unique_lock<std::mutex>;

  /// Waits on `changed` for seats, and notifies it when a seat is free, a hello has arrived or a lane has given up.
  WorkerRoster(const WorkerOptions& options, std::condition_variable& changed) : options_(options), changed_(changed) {}

  /// Makes sure that a slot of the lane has a ready worker; false if cancelled or given up.
  bool prepare(Lock& lock, Lane& lane, std::unique_ptr<WorkerProcess>& worker);
  /// Stops the slot's worker, if it has one.
  void stop_worker(Lock& lock, std::unique_ptr<WorkerProcess>& worker);

  /// Mark the worker as busy, so that kill() reaches it.
  void mark_busy(WorkerProcess& worker);
  void mark_idle(WorkerProcess& worker) { busy_.erase(&worker); }

  /// Starts no further workers and kills those that are starting.
  void cancel();
  /// Also kills busy workers.
  void kill();

  [[nodiscard]] bool cancelled() const noexcept { return cancelled_; }
  /// True if someone is waiting for a seat, so idle workers should be stopped.
  [[nodiscard]] bool seat_wanted() const noexcept { return waiting_for_seat_ > 0; }

 private:
  [[nodiscard]] bool acquire_seat(Lock& lock);
  void release_seat();
  [[nodiscard]] std::optional<StartFailure> start(Lock& lock, Lane& lane, std::unique_ptr<WorkerProcess>& worker);

  const WorkerOptions& options_;
  std::condition_variable& changed_;
  std::set<WorkerProcess*> busy_;
  std::set<WorkerProcess*> starting_;
  int seats_taken_ = 0;
  int waiting_for_seat_ = 0;
  bool cancelled_ = false;
  bool killed_ = false;
};

}  // namespace numcheck::worker
