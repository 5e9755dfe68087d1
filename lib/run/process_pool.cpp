// Workers as child processes: which environment has which, who runs next, and when to give up.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "machine/memory.hpp"
#include "run/arena.hpp"
#include "run/pool.hpp"
#include "run/worker_process.hpp"

namespace numcheck::run {
namespace {

/// An idle worker gives its device context back after this time; starting another costs about 0.5 s.
constexpr auto kIdleRelease = std::chrono::seconds(30);

/// The cases of one environment and what is known of its workers. Guarded by the pool's mutex.
struct Group {
  plan::Environment environment;
  std::deque<Task> queue;
  std::optional<WorkerHello> hello;
  bool hello_wanted = false;
  bool starting_for_hello = false;
  int deaths_in_row = 0;
  std::string given_up;  ///< why no further worker is started; empty: go on
};

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
    Group& group = group_of(environment);
    group.hello_wanted = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return group.hello || !group.given_up.empty() || cancelled_; });
    if (!group.hello) {
      throw core::EnvironmentError(group.given_up.empty() ? std::string(kInterrupted) : group.given_up);
    }
    return *group.hello;
  }

  void submit(Task task) override {
    check(task);
    const std::lock_guard lock(mutex_);
    ledger_.begin();
    group_of(task.c->environment).queue.push_back(std::move(task));
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

  static void check(const Task& task) {
    if (task.c == nullptr || task.blocks.size() != task.ports.size()) {
      throw core::InternalError("a task needs a case, and one block for each port");
    }
    for (std::size_t i = 0; i < task.ports.size(); ++i) {
      const HostPort& port = task.ports[i];
      auto* block = dynamic_cast<ArenaBlock*>(task.blocks[i].get());
      const std::span<std::byte> whole = block == nullptr ? std::span<std::byte>() : block->bytes();
      const bool inside = port.bytes.empty() || (port.bytes.data() >= whole.data() &&
                                                 port.bytes.data() + port.bytes.size() <= whole.data() + whole.size());
      if (block == nullptr || !inside || port.port == nullptr || port.bytes.size() < port.port->extent_bytes()) {
        throw core::InternalError(fmt::format("port {} of {} does not lie in a block of this pool", i, task.c->id));
      }
    }
  }

  /// The group, with its slots' threads; made on first use.
  Group& group_of(const plan::Environment& environment) {
    auto& group = groups_[environment];
    if (!group) {
      group = std::make_unique<Group>();
      group->environment = environment;
      for (int i = 0; i < std::max(1, options_.workers_per_environment); ++i) {
        slots_.emplace_back([this, &g = *group] { serve(g); });
      }
    }
    return *group;
  }

  /// One slot of a group: at most one worker process at a time.
  void serve(Group& group) {
    std::unique_ptr<WorkerProcess> worker;
    Lock lock(mutex_);
    for (;;) {
      const auto work = [&] { return stop_ || !group.queue.empty() || hello_needed(group); };
      const auto must_yield = [&] { return worker && waiting_for_seat_ > 0; };
      const bool woken = changed_.wait_for(lock, kIdleRelease, [&] { return work() || must_yield(); });
      if (!work()) {
        if (worker && (!woken || must_yield())) {
          dismiss(lock, worker);
        }
        continue;
      }
      if (!group.queue.empty()) {
        run_next(lock, group, worker);
      } else if (stop_) {
        break;
      } else {
        group.starting_for_hello = true;
        prepare(lock, group, worker);
        group.starting_for_hello = false;
        changed_.notify_all();
      }
    }
    dismiss(lock, worker);
  }

  bool hello_needed(const Group& group) const {
    return group.hello_wanted && !group.hello && group.given_up.empty() && !group.starting_for_hello && !cancelled_;
  }

  void run_next(Lock& lock, Group& group, std::unique_ptr<WorkerProcess>& worker) {
    Task task = std::move(group.queue.front());
    group.queue.pop_front();
    Outcome outcome{Outcome::Kind::error, std::string(kInterrupted), 0};
    if (prepare(lock, group, worker)) {
      outcome = run_on(lock, group, worker, task);
    } else if (!cancelled_) {
      outcome.reason = group.given_up;
    }
    lock.unlock();
    const bool accepted = conclude_task(std::move(task), outcome, ledger_);
    if (!accepted) {
      cancel_pending();
    }
    ledger_.end();
    lock.lock();
  }

  Outcome run_on(Lock& lock, Group& group, std::unique_ptr<WorkerProcess>& worker, const Task& task) {
    busy_.insert(worker.get());
    if (killed_ || stop_) {
      worker->kill();
    }
    const std::uint64_t number = ++last_task_;
    lock.unlock();
    std::exception_ptr failure;
    Outcome outcome;
    bool lost = false;
    try {
      outcome = worker->run(number, task, guarded_sink(task, failure));
    } catch (...) {
      outcome = {Outcome::Kind::error, describe_exception(std::current_exception()), 0};
      lost = true;  // nobody knows where the conversation stands
    }
    if (failure) {
      outcome = {Outcome::Kind::error, describe_exception(failure), outcome.device_s};
    }
    lock.lock();
    busy_.erase(worker.get());
    if (lost || !worker->alive() || worker->spent()) {
      count_death(group, outcome.reason);
      dismiss(lock, worker);
    } else {
      group.deaths_in_row = 0;
    }
    return outcome;
  }

  /// Makes sure that the slot has a ready worker; false if there is to be none.
  bool prepare(Lock& lock, Group& group, std::unique_ptr<WorkerProcess>& worker) {
    while (!worker && !cancelled_ && group.given_up.empty()) {
      ++waiting_for_seat_;
      changed_.notify_all();  // an idle worker of another environment may leave
      changed_.wait(lock, [&] { return seats_taken_ < std::max(1, options_.max_workers) || cancelled_; });
      --waiting_for_seat_;
      if (cancelled_) {
        return false;
      }
      ++seats_taken_;
      if (const auto failure = start(lock, group, worker)) {
        leave_seat();
        if (cancelled_) {
          return false;
        }
        if (failure->permanent) {
          group.given_up = failure->reason;
        } else {
          count_death(group, failure->reason);
        }
        changed_.notify_all();
      }
    }
    return worker != nullptr && !cancelled_;
  }

  std::optional<StartFailure> start(Lock& lock, Group& group, std::unique_ptr<WorkerProcess>& worker) {
    lock.unlock();
    std::unique_ptr<WorkerProcess> candidate;
    std::variant<WorkerHello, StartFailure> answer = StartFailure{};
    try {
      candidate = std::make_unique<WorkerProcess>(options_, group.environment);
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
    if (group.hello && (group.hello->device.name != hello.device.name ||
                        group.hello->device.uuid != hello.device.uuid || group.hello->libraries != hello.libraries)) {
      lock.unlock();
      candidate.reset();
      lock.lock();
      return StartFailure{
          fmt::format("a new worker found the device {} ({}) with other libraries or another device than "
                      "the first one, {} ({})",
                      hello.device.name, hello.device.uuid, group.hello->device.name, group.hello->device.uuid),
          true};
    }
    group.hello = hello;
    worker = std::move(candidate);
    changed_.notify_all();
    return std::nullopt;
  }

  void count_death(Group& group, const std::string& reason) {
    if (++group.deaths_in_row > options_.max_respawns_in_row) {
      group.given_up = fmt::format("no more workers: {} in a row died without finishing a case; the last: {}",
                                   group.deaths_in_row, reason);
    }
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
  std::map<plan::Environment, std::unique_ptr<Group>> groups_;
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
