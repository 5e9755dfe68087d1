// Which worker processes a pool has: seats, starts and ends.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "worker/lane.hpp"
#include "worker/worker_process.hpp"

namespace numcheck::worker {

/// Guarded by the pool's mutex: every call wants it locked. Calls with a lock open it while a process starts or ends.
class WorkerRoster {
 public:
  using Lock = std::unique_lock<std::mutex>;

  /// Waits on `changed` for seats, and notifies it when a seat, a hello or the end of a lane is there.
  WorkerRoster(const WorkerOptions& options, std::condition_variable& changed) : options_(options), changed_(changed) {}

  /// Makes sure that a slot of the lane has a ready worker; false if there is to be none: cancelled, or given up.
  bool prepare(Lock& lock, Lane& lane, std::unique_ptr<WorkerProcess>& worker);
  /// Ends the slot's worker, if it has one.
  void dismiss(Lock& lock, std::unique_ptr<WorkerProcess>& worker);

  /// Around a conversation with a worker: what kill() must reach.
  void begin_use(WorkerProcess& worker);
  void end_use(WorkerProcess& worker) { busy_.erase(&worker); }

  /// No further workers; those that are starting are killed.
  void cancel();
  /// Those at work, too.
  void kill();

  [[nodiscard]] bool cancelled() const noexcept { return cancelled_; }
  /// Somebody waits for a seat: an idle worker should leave.
  [[nodiscard]] bool seat_wanted() const noexcept { return waiting_for_seat_ > 0; }

 private:
  [[nodiscard]] bool take_seat(Lock& lock);
  void leave_seat();
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
