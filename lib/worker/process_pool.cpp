// Workers as child processes, and the queues that feed them.
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "core/counted.hpp"
#include "core/error.hpp"
#include "core/trace.hpp"
#include "machine/memory.hpp"
#include "worker/arena.hpp"
#include "worker/lane.hpp"
#include "worker/pool.hpp"
#include "worker/start_thread.hpp"
#include "worker/task_layout.hpp"
#include "worker/worker_roster.hpp"

namespace numcheck::worker {
namespace {

/// After this time an idle worker is stopped to free its device context; starting another one takes about 0.5 s.
constexpr auto kIdleRelease = std::chrono::seconds(30);
/// One worker that dies before it starts a case may have died for unrelated reasons; after two in a row the case is
/// blamed.
constexpr int kMaxDeathsBeforeStart = 2;

class ProcessPool final : public Pool {
 public:
  explicit ProcessPool(WorkerOptions options)
      : options_(std::move(options)),
        arenas_(std::make_shared<ArenaPool>(options_.max_idle_bytes != 0 ? options_.max_idle_bytes
                                                                         : machine::memory_limit_bytes() / 8)),
        roster_(options_, changed_) {
    if (options_.on_output) {
      options_.on_output = [this, sink = options_.on_output](std::string_view text) {
        const std::lock_guard lock(output_mutex_);
        try {
          sink(text);
        } catch (...) {
          tracker_.keep_exception();
        }
      };
    }
  }

  ~ProcessPool() override {
    {
      const std::lock_guard lock(mutex_);
      roster_.kill();
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& slot : slots_) {
      slot.join();
    }
  }

  std::shared_ptr<SharedBlock> allocate(std::size_t bytes, BlockUse use) override {
    return arenas_->allocate(bytes, use);
  }

  WorkerHello hello(const WorkerKey& key) override {
    std::unique_lock lock(mutex_);
    Lane& lane = lane_of(key);
    lane.hello_wanted = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return lane.hello || !lane.give_up_reason.empty() || roster_.cancelled(); });
    if (!lane.hello) {
      throw core::EnvironmentError(lane.give_up_reason.empty() ? std::string(kInterrupted) : lane.give_up_reason);
    }
    return *lane.hello;
  }

  void ask(Question question) override {
    std::unique_lock lock(mutex_);
    Lane& lane = lane_of(worker_key(*question.cases.front()));
    if (lane.has_no_thread) {
      const Outcome refused{Outcome::Kind::error, lane.give_up_reason, 0};
      lock.unlock();
      for (std::size_t i = 0; i < question.cases.size() && deliver_answer(question, i, refused, tracker_); ++i) {
      }
      return;
    }
    lane.questions.push_back(std::move(question));
    tracker_.begin();
    changed_.notify_all();
  }

  void submit(Task task) override {
    (void)layout_of(task);  // throws if the task's blocks do not belong to this pool
    std::unique_lock lock(mutex_);
    Lane& lane = lane_of(worker_key(*task.c));
    if (lane.has_no_thread) {
      const Outcome refused{Outcome::Kind::error, lane.give_up_reason, 0};
      lock.unlock();
      finish_task(std::move(task), refused, tracker_);
      return;
    }
    lane.queue.push_back(std::move(task));
    tracker_.begin();
    changed_.notify_all();
  }

  void expect_no_more() override {
    {
      const std::lock_guard lock(mutex_);
      is_last_ = true;
    }
    changed_.notify_all();
    arenas_->keep_no_more();
  }

  void wait_idle() override { tracker_.wait(); }

  void cancel_pending() override {
    const std::lock_guard lock(mutex_);
    roster_.cancel();
  }

  void kill_workers() override {
    const std::lock_guard lock(mutex_);
    roster_.kill();
  }

 private:
  using Lock = WorkerRoster::Lock;
  using Slot = std::unique_ptr<WorkerProcess>;  ///< empty until a worker is needed

  /// The lane of a key, created on first use with one thread per slot. Fewer threads than wanted are fine; none is not.
  Lane& lane_of(const WorkerKey& key) {
    auto& lane = lanes_[key];
    if (!lane) {
      lane = std::make_unique<Lane>();
      lane->key = key;
      lane->has_no_thread = true;
      const auto wanted = static_cast<std::size_t>(std::max(1, options_.workers_per_environment));
      try {
        slots_.reserve(slots_.size() + wanted);
        for (std::size_t i = 0; i < wanted; ++i) {
          slots_.push_back(start_thread("to communicate with a worker", [this, &g = *lane] { serve(g); }));
          lane->has_no_thread = false;
        }
      } catch (const std::exception& error) {
        lane->give_up_reason = lane->has_no_thread ? error.what() : "";
      }
    }
    return *lane;
  }

  void serve(Lane& lane) {
    const core::TraceSection section(options_.trace, "worker");
    Slot worker;
    Lock lock(mutex_);
    for (;;) {
      const auto work = [&] { return stop_ || lane.has_work() || (lane.needs_hello() && !roster_.cancelled()); };
      const auto must_yield = [&] { return worker && (is_last_ || roster_.seat_wanted()); };
      const bool woken = changed_.wait_for(lock, kIdleRelease, [&] { return work() || must_yield(); });
      if (!work()) {
        if (worker && (!woken || must_yield())) {
          roster_.stop_worker(lock, worker);
        }
        continue;
      }
      if (!lane.questions.empty()) {
        answer_next_question(lock, lane, worker);
      } else if (!lane.queue.empty()) {
        run_next_task(lock, lane, worker);
      } else if (stop_) {
        break;
      } else {
        lane.starting_for_hello = true;
        roster_.prepare(lock, lane, worker);
        lane.starting_for_hello = false;
        changed_.notify_all();
      }
    }
    roster_.stop_worker(lock, worker);
  }

  [[nodiscard]] std::string reason_not_started(const Lane& lane) const {
    return roster_.cancelled() ? std::string(kInterrupted) : lane.give_up_reason;
  }

  static void ensure_locked(Lock& lock) {
    if (!lock.owns_lock()) {
      lock.lock();
    }
  }

  void run_next_task(Lock& lock, Lane& lane, Slot& worker) {
    Task task = std::move(lane.queue.front());
    lane.queue.pop_front();
    std::optional<Outcome> outcome;
    try {
      for (int deaths = 0; !outcome && roster_.prepare(lock, lane, worker);) {
        outcome = run_on(lock, lane, worker, task);
        if (!outcome && ++deaths == kMaxDeathsBeforeStart) {
          outcome = {Outcome::Kind::crashed, lane.last_failure, 0};
        }
      }
      if (!outcome) {
        outcome = {Outcome::Kind::error, reason_not_started(lane), 0};
      }
    } catch (const std::exception&) {  // out of memory, for instance
      ensure_locked(lock);
      outcome = {Outcome::Kind::error, describe_exception(std::current_exception()), 0};
    }
    lock.unlock();
    if (!finish_task(std::move(task), *outcome, tracker_)) {
      cancel_pending();
    }
    tracker_.end();
    lock.lock();
  }

  /// Nothing if the worker died before it started the task.
  std::optional<Outcome> run_on(Lock& lock, Lane& lane, Slot& worker, const Task& task) {
    roster_.mark_busy(*worker);
    const std::uint64_t number = ++last_number_;
    lock.unlock();
    std::exception_ptr failure;
    std::optional<Outcome> result;
    bool out_of_sync = false;
    try {
      result = worker->run(number, task, guarded_sink(task, failure));
    } catch (...) {
      result = {Outcome::Kind::error, describe_exception(std::current_exception()), 0};
      out_of_sync = true;  // the state of the conversation is unknown
    }
    if (failure && result) {
      result = {Outcome::Kind::error, describe_exception(failure), result->device_s};
    }
    lock.lock();
    roster_.mark_idle(*worker);
    if (out_of_sync || !worker->alive() || worker->device_lost()) {
      lane.count_case_failure(result ? *result : not_started(*worker), options_);
      roster_.stop_worker(lock, worker);
    } else {
      lane.case_failures = {};
    }
    return result;
  }

  /// Reports a worker that died before it started work, since no case's result will mention it.
  Outcome not_started(const WorkerProcess& worker) const {
    if (options_.on_replaced && worker.death_reason() != kInterrupted) {
      options_.on_replaced(worker.death_reason());
    }
    return {Outcome::Kind::error, worker.death_reason(), 0};
  }

  void answer_next_question(Lock& lock, Lane& lane, Slot& worker) {
    const Question question = std::move(lane.questions.front());
    lane.questions.pop_front();
    std::size_t answered = 0;
    bool accepted = true;
    const AnswerSink deliver = [&](std::size_t, const Outcome& outcome) {
      accepted = accepted && deliver_answer(question, answered, outcome, tracker_);
      ++answered;
    };
    Outcome rest{Outcome::Kind::error, "", 0};
    try {
      for (int deaths = 0; answered < question.cases.size() && roster_.prepare(lock, lane, worker);) {
        const std::size_t before = answered;
        ask_on(lock, lane, worker, std::span(question.cases).subspan(answered), deliver);
        deaths = answered == before ? deaths + 1 : 0;
        if (deaths == kMaxDeathsBeforeStart) {
          deliver(answered, {Outcome::Kind::crashed, lane.last_failure, 0});
          deaths = 0;
        }
      }
      rest.reason = reason_not_started(lane);
    } catch (const std::exception&) {
      ensure_locked(lock);
      rest.reason = describe_exception(std::current_exception());
    }
    lock.unlock();
    while (answered < question.cases.size()) {
      deliver(answered, rest);
    }
    if (!accepted) {
      cancel_pending();
    }
    tracker_.end();
    lock.lock();
  }

  void ask_on(Lock& lock, Lane& lane, Slot& worker, std::span<const plan::Case* const> cases,
              const AnswerSink& deliver) {
    roster_.mark_busy(*worker);
    const std::uint64_t number = ++last_number_;
    lock.unlock();
    std::size_t answers = 0;
    Outcome end;
    bool out_of_sync = false;
    const AnswerSink on_answer = [&](std::size_t index, const Outcome& outcome) {
      ++answers;
      end = outcome;
      deliver(index, outcome);
    };
    bool started = true;
    core::Span span("answer questions");
    span.note([&cases] { return core::counted(static_cast<double>(cases.size()), "case"); });
    try {
      started = worker->ask(number, cases, on_answer).has_value();
    } catch (...) {
      out_of_sync = true;
      on_answer(answers, {Outcome::Kind::error, describe_exception(std::current_exception()), 0});
    }
    lock.lock();
    roster_.mark_idle(*worker);
    const bool ended = out_of_sync || !worker->alive() || worker->device_lost();
    // If the worker has ended, the last answer is how it died.
    if (answers > (ended ? 1U : 0U)) {
      lane.question_failures = {};
    }
    if (ended) {
      lane.count_question_failure(started ? end : not_started(*worker), options_);
      roster_.stop_worker(lock, worker);
    }
  }

  WorkerOptions options_;
  std::shared_ptr<ArenaPool> arenas_;
  std::mutex output_mutex_;
  WorkTracker tracker_;
  std::mutex mutex_;
  std::condition_variable changed_;  ///< notified when anything below changes
  WorkerRoster roster_;
  std::map<WorkerKey, std::unique_ptr<Lane>> lanes_;
  std::uint64_t last_number_ = 0;
  bool stop_ = false;
  bool is_last_ = false;  ///< expect_no_more()
  std::vector<std::thread> slots_;
};

}  // namespace

std::unique_ptr<Pool> make_process_pool(WorkerOptions options) {
  return std::make_unique<ProcessPool>(std::move(options));
}

}  // namespace numcheck::worker
