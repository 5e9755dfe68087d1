// Workers as child processes: which environment has which, who runs next, and when to give up.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "machine/memory.hpp"
#include "run/arena.hpp"
#include "run/lane.hpp"
#include "run/pool.hpp"
#include "run/task_layout.hpp"
#include "run/worker_process.hpp"

namespace numcheck::run {
namespace {

/// An idle worker gives its device context back after this time; starting another costs about 0.5 s.
constexpr auto kIdleRelease = std::chrono::seconds(30);

class ProcessPool final : public Pool {
 public:
  explicit ProcessPool(WorkerOptions options)
      : options_(std::move(options)),
        arenas_(std::make_shared<ArenaPool>(options_.max_idle_bytes != 0 ? options_.max_idle_bytes
                                                                         : machine::memory_limit_bytes() / 8)) {
    if (options_.on_output) {
      options_.on_output = [this, sink = options_.on_output](std::string_view text) {
        const std::lock_guard lock(output_mutex_);
        try {
          sink(text);
        } catch (...) {
          ledger_.keep_exception();
        }
      };
    }
  }

  ~ProcessPool() override {
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
      stop_ = true;
      for (const auto* workers : {&busy_, &starting_}) {
        std::for_each(workers->begin(), workers->end(), [](WorkerProcess* worker) { worker->kill(); });
      }
    }
    changed_.notify_all();
    for (std::thread& slot : slots_) {
      slot.join();
    }
  }

  std::shared_ptr<SharedBlock> allocate(std::size_t bytes) override { return arenas_->allocate(bytes); }

  WorkerHello hello(const plan::Environment& environment) override {
    std::unique_lock lock(mutex_);
    Lane& lane = lane_of(environment);
    lane.hello_wanted = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return lane.hello || !lane.given_up.empty() || cancelled_; });
    if (!lane.hello) {
      throw core::EnvironmentError(lane.given_up.empty() ? std::string(kInterrupted) : lane.given_up);
    }
    return *lane.hello;
  }

  void submit(Task task) override {
    (void)layout_of(task);  // throws if it is not a task for this pool
    const std::lock_guard lock(mutex_);
    ledger_.begin();
    lane_of(task.c->environment).queue.push_back(std::move(task));
    changed_.notify_all();
  }

  void wait_idle() override { ledger_.wait(); }

  void cancel_pending() override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    for (WorkerProcess* worker : starting_) {
      worker->kill();
    }
    changed_.notify_all();
  }

  void kill_workers() override {
    cancel_pending();
    const std::lock_guard lock(mutex_);
    killed_ = true;
    for (WorkerProcess* worker : busy_) {
      worker->kill();
    }
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  /// The lane, with its slots' threads; made on first use.
  Lane& lane_of(const plan::Environment& environment) {
    auto& lane = lanes_[environment];
    if (!lane) {
      lane = std::make_unique<Lane>();
      lane->environment = environment;
      for (int i = 0; i < std::max(1, options_.workers_per_environment); ++i) {
        slots_.emplace_back([this, &g = *lane] { serve(g); });
      }
    }
    return *lane;
  }

  /// One slot of a lane: at most one worker process at a time.
  void serve(Lane& lane) {
    std::unique_ptr<WorkerProcess> worker;
    Lock lock(mutex_);
    for (;;) {
      const auto work = [&] { return stop_ || !lane.queue.empty() || (lane.needs_hello() && !cancelled_); };
      const auto must_yield = [&] { return worker && waiting_for_seat_ > 0; };
      const bool woken = changed_.wait_for(lock, kIdleRelease, [&] { return work() || must_yield(); });
      if (!work()) {
        if (worker && (!woken || must_yield())) {
          dismiss(lock, worker);
        }
        continue;
      }
      if (!lane.queue.empty()) {
        run_next(lock, lane, worker);
      } else if (stop_) {
        break;
      } else {
        lane.starting_for_hello = true;
        prepare(lock, lane, worker);
        lane.starting_for_hello = false;
        changed_.notify_all();
      }
    }
    dismiss(lock, worker);
  }

  void run_next(Lock& lock, Lane& lane, std::unique_ptr<WorkerProcess>& worker) {
    Task task = std::move(lane.queue.front());
    lane.queue.pop_front();
    Outcome outcome{Outcome::Kind::error, std::string(kInterrupted), 0};
    bool ended = false;
    while (!ended && prepare(lock, lane, worker)) {
      ended = run_on(lock, lane, worker, task, outcome);
    }
    if (!ended && !cancelled_) {
      outcome.reason = lane.given_up;
    }
    lock.unlock();
    const bool accepted = conclude_task(std::move(task), outcome, ledger_);
    if (!accepted) {
      cancel_pending();
    }
    ledger_.end();
    lock.lock();
  }

  /// False if the worker had died before it could take the task.
  bool run_on(Lock& lock, Lane& lane, std::unique_ptr<WorkerProcess>& worker, const Task& task, Outcome& outcome) {
    busy_.insert(worker.get());
    if (killed_ || stop_) {
      worker->kill();
    }
    const std::uint64_t number = ++last_task_;
    lock.unlock();
    std::exception_ptr failure;
    std::optional<Outcome> result;
    bool lost = false;
    try {
      result = worker->run(number, task, guarded_sink(task, failure));
    } catch (...) {
      result = {Outcome::Kind::error, describe_exception(std::current_exception()), 0};
      lost = true;  // nobody knows where the conversation stands
    }
    if (failure && result) {
      result = {Outcome::Kind::error, describe_exception(failure), result->device_s};
    }
    lock.lock();
    busy_.erase(worker.get());
    if (lost || !worker->alive() || worker->spent()) {
      lane.count_death(result ? result->reason : worker->death(), options_.max_respawns_in_row);
      dismiss(lock, worker);
    } else {
      lane.deaths_in_row = 0;
    }
    if (!result) {
      return false;
    }
    outcome = *std::move(result);
    return true;
  }

  /// Makes sure that the slot has a ready worker; false if there is to be none.
  bool prepare(Lock& lock, Lane& lane, std::unique_ptr<WorkerProcess>& worker) {
    while (!worker && !cancelled_ && lane.given_up.empty()) {
      ++waiting_for_seat_;
      changed_.notify_all();  // an idle worker of another environment may leave
      changed_.wait(lock, [&] { return seats_taken_ < std::max(1, options_.max_workers) || cancelled_; });
      --waiting_for_seat_;
      if (cancelled_) {
        return false;
      }
      ++seats_taken_;
      if (const auto failure = start(lock, lane, worker)) {
        leave_seat();
        if (cancelled_) {
          return false;
        }
        if (failure->permanent) {
          lane.given_up = failure->reason;
        } else {
          lane.count_death(failure->reason, options_.max_respawns_in_row);
        }
        changed_.notify_all();
      }
    }
    return worker != nullptr && !cancelled_;
  }

  std::optional<StartFailure> start(Lock& lock, Lane& lane, std::unique_ptr<WorkerProcess>& worker) {
    lock.unlock();
    std::unique_ptr<WorkerProcess> candidate;
    std::variant<WorkerHello, StartFailure> answer = StartFailure{};
    try {
      candidate = std::make_unique<WorkerProcess>(options_, lane.environment);
      lock.lock();
      starting_.insert(candidate.get());
      if (cancelled_) {
        candidate->kill();
      }
      lock.unlock();
      answer = candidate->start();
    } catch (const core::Error& error) {
      answer = StartFailure{error.what(), false};
    }
    lock.lock();
    starting_.erase(candidate.get());
    if (auto* failure = std::get_if<StartFailure>(&answer)) {
      return std::move(*failure);
    }
    const auto& hello = std::get<WorkerHello>(answer);
    if (lane.hello && identity_text(*lane.hello) != identity_text(hello)) {
      lock.unlock();
      candidate.reset();
      lock.lock();
      return StartFailure{fmt::format("a new worker found {}, the first one {}: the device or the libraries changed",
                                      identity_text(hello), identity_text(*lane.hello)),
                          true};
    }
    lane.hello = hello;
    worker = std::move(candidate);
    changed_.notify_all();
    return std::nullopt;
  }

  /// Ends the slot's worker, if it has one.
  void dismiss(Lock& lock, std::unique_ptr<WorkerProcess>& worker) {
    if (worker) {
      lock.unlock();
      worker.reset();
      lock.lock();
      leave_seat();
    }
  }

  void leave_seat() {
    --seats_taken_;
    changed_.notify_all();
  }

  WorkerOptions options_;
  std::shared_ptr<ArenaPool> arenas_;
  std::mutex output_mutex_;
  Ledger ledger_;
  std::mutex mutex_;
  std::condition_variable changed_;  ///< anything below changed
  std::map<plan::Environment, std::unique_ptr<Lane>> lanes_;
  std::set<WorkerProcess*> busy_;
  std::set<WorkerProcess*> starting_;
  int seats_taken_ = 0;
  int waiting_for_seat_ = 0;
  std::uint64_t last_task_ = 0;
  bool cancelled_ = false;
  bool killed_ = false;
  bool stop_ = false;
  std::vector<std::thread> slots_;
};

}  // namespace

std::unique_ptr<Pool> make_process_pool(WorkerOptions options) {
  return std::make_unique<ProcessPool>(std::move(options));
}

}  // namespace numcheck::run
