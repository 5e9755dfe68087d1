#include "worker/worker_roster.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/trace.hpp"

namespace numcheck::worker {
namespace {

/// "NVIDIA_TF32_OVERRIDE=0 CUBLAS_WORKSPACE_CONFIG=(unset)"
std::string words_of(const WorkerKey& key) {
  std::string text = key.version;
  for (const auto& [name, value] : key.environment) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value.value_or("(unset)"));
  }
  return text;
}

}  // namespace

void WorkerRoster::mark_busy(WorkerProcess& worker) {
  busy_.insert(&worker);
  if (killed_) {
    worker.kill();
  }
}

void WorkerRoster::cancel() {
  cancelled_ = true;
  for (WorkerProcess* worker : starting_) {
    worker->kill();
  }
  changed_.notify_all();
}

void WorkerRoster::kill() {
  cancel();
  killed_ = true;
  for (WorkerProcess* worker : busy_) {
    worker->kill();
  }
}

bool WorkerRoster::acquire_seat(Lock& lock) {
  ++waiting_for_seat_;
  changed_.notify_all();  // so that an idle worker of another lane may give up its seat
  changed_.wait(lock, [&] { return seats_taken_ < std::max(1, options_.max_workers) || cancelled_; });
  --waiting_for_seat_;
  if (!cancelled_) {
    ++seats_taken_;
  }
  return !cancelled_;
}

void WorkerRoster::release_seat() {
  --seats_taken_;
  changed_.notify_all();
}

bool WorkerRoster::prepare(Lock& lock, Lane& lane, std::unique_ptr<WorkerProcess>& worker) {
  while (!worker && !cancelled_ && lane.give_up_reason.empty()) {
    if (!acquire_seat(lock)) {
      return false;
    }
    if (const auto failure = start(lock, lane, worker)) {
      release_seat();
      if (cancelled_) {
        return false;
      }
      if (failure->permanent) {
        lane.give_up_reason = failure->reason;
      } else {
        lane.count_case_failure({Outcome::Kind::error, failure->reason, 0}, options_);
      }
      changed_.notify_all();
    }
  }
  return worker != nullptr && !cancelled_;
}

std::optional<StartFailure> WorkerRoster::start(Lock& lock, Lane& lane, std::unique_ptr<WorkerProcess>& worker) {
  lock.unlock();
  core::Span span("start worker");
  span.note([&lane] { return words_of(lane.key); });
  std::unique_ptr<WorkerProcess> candidate;
  std::variant<WorkerHello, StartFailure> answer = StartFailure{};
  try {
    candidate = std::make_unique<WorkerProcess>(options_, lane.key.environment);
    lock.lock();
    starting_.insert(candidate.get());
    if (cancelled_) {
      candidate->kill();
    }
    lock.unlock();
    answer = candidate->start();
  } catch (const core::Error& error) {
    answer = StartFailure{error.what(), false};
  } catch (const std::exception& error) {  // such as std::bad_alloc: nothing may escape the lane's thread
    answer = StartFailure{fmt::format("cannot start a worker: {}", error.what()), false};
  }
  if (!lock.owns_lock()) {
    lock.lock();
  }
  starting_.erase(candidate.get());
  if (auto* failure = std::get_if<StartFailure>(&answer)) {
    // A device that worked before may recover after a fault.
    failure->permanent = failure->permanent && !lane.hello;
    return std::move(*failure);
  }
  const auto& hello = std::get<WorkerHello>(answer);
  if (lane.hello && identity_text(*lane.hello) != identity_text(hello)) {
    lock.unlock();
    candidate.reset();
    lock.lock();
    return StartFailure{
        fmt::format("a new worker found {}, but the first one found {}: the device or the libraries have changed",
                    identity_text(hello), identity_text(*lane.hello)),
        true};
  }
  lane.hello = hello;
  worker = std::move(candidate);
  changed_.notify_all();
  return std::nullopt;
}

void WorkerRoster::stop_worker(Lock& lock, std::unique_ptr<WorkerProcess>& worker) {
  if (worker) {
    lock.unlock();
    worker.reset();
    lock.lock();
    release_seat();
  }
}

}  // namespace numcheck::worker
