// Workers as child processes: which key has which, and what they do next.
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "machine/memory.hpp"
#include "worker/arena.hpp"
#include "worker/lane.hpp"
#include "worker/pool.hpp"
#include "worker/start_thread.hpp"
#include "worker/task_layout.hpp"
#include "worker/worker_roster.hpp"

namespace numcheck::worker {
namespace {

/// An idle worker gives its device context back after this time; starting another costs about 0.5 s.
constexpr auto kIdleRelease = std::chrono::seconds(30);
/// A worker that dies before it begins with what it was given had died by itself; two in a row had not.
constexpr int kDeathsBeforeBegin = 2;

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
          ledger_.keep_exception();
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
    changed_.wait(lock, [&] { return lane.hello || !lane.given_up.empty() || roster_.cancelled(); });
    if (!lane.hello) {
      throw core::EnvironmentError(lane.given_up.empty() ? std::string(kInterrupted) : lane.given_up);
    }
    return *lane.hello;
  }

  void ask(Question question) override {
    std::unique_lock lock(mutex_);
    Lane& lane = lane_of(worker_key(*question.cases.front()));
    if (lane.threadless) {
      const Outcome refused{Outcome::Kind::error, lane.given_up, 0};
      lock.unlock();
      for (std::size_t i = 0; i < question.cases.size() && tell_answer(question, i, refused, ledger_); ++i) {
      }
      return;
    }
    lane.questions.push_back(std::move(question));
    ledger_.begin();
    changed_.notify_all();
  }

  void submit(Task task) override {
    (void)layout_of(task);  // throws if it is not a task for this pool
    std::unique_lock lock(mutex_);
    Lane& lane = lane_of(worker_key(*task.c));
    if (lane.threadless) {
      const Outcome refused{Outcome::Kind::error, lane.given_up, 0};
      lock.unlock();
      conclude_task(std::move(task), refused, ledger_);
      return;
    }
    lane.queue.push_back(std::move(task));
    ledger_.begin();
    changed_.notify_all();
  }

  void wait_idle() override { ledger_.wait(); }

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
  using Slot = std::unique_ptr<WorkerProcess>;  ///< a lane's place for a worker process; empty before it is needed

  /// The lane, with its slots' threads; made on first use. With fewer threads than wanted it works, but for none.
  Lane& lane_of(const WorkerKey& key) {
    auto& lane = lanes_[key];
    if (!lane) {
      lane = std::make_unique<Lane>();
      lane->key = key;
      lane->threadless = true;
      const auto wanted = static_cast<std::size_t>(std::max(1, options_.workers_per_environment));
      try {
        slots_.reserve(slots_.size() + wanted);
        for (std::size_t i = 0; i < wanted; ++i) {
          slots_.push_back(start_thread("that talks to a worker", [this, &g = *lane] { serve(g); }));
          lane->threadless = false;
        }
      } catch (const std::exception& error) {
        lane->given_up = lane->threadless ? error.what() : "";
      }
    }
    return *lane;
  }

  void serve(Lane& lane) {
    Slot worker;
    Lock lock(mutex_);
    for (;;) {
      const auto work = [&] { return stop_ || lane.has_work() || (lane.needs_hello() && !roster_.cancelled()); };
      const auto must_yield = [&] { return worker && roster_.seat_wanted(); };
      const bool woken = changed_.wait_for(lock, kIdleRelease, [&] { return work() || must_yield(); });
      if (!work()) {
        if (worker && (!woken || must_yield())) {
          roster_.dismiss(lock, worker);
        }
        continue;
      }
      if (!lane.questions.empty()) {
        answer_next(lock, lane, worker);
      } else if (!lane.queue.empty()) {
        run_next(lock, lane, worker);
      } else if (stop_) {
        break;
      } else {
        lane.starting_for_hello = true;
        roster_.prepare(lock, lane, worker);
        lane.starting_for_hello = false;
        changed_.notify_all();
      }
    }
    roster_.dismiss(lock, worker);
  }

  [[nodiscard]] std::string why_not_begun(const Lane& lane) const {
    return roster_.cancelled() ? std::string(kInterrupted) : lane.given_up;
  }

  static void relock(Lock& lock) {
    if (!lock.owns_lock()) {
      lock.lock();
    }
  }

  void run_next(Lock& lock, Lane& lane, Slot& worker) {
    Task task = std::move(lane.queue.front());
    lane.queue.pop_front();
    std::optional<Outcome> outcome;
    try {
      for (int deaths = 0; !outcome && roster_.prepare(lock, lane, worker);) {
        outcome = run_on(lock, lane, worker, task);
        if (!outcome && ++deaths == kDeathsBeforeBegin) {
          outcome = {Outcome::Kind::crashed, lane.last_death, 0};
        }
      }
      if (!outcome) {
        outcome = {Outcome::Kind::error, why_not_begun(lane), 0};
      }
    } catch (const std::exception&) {  // there is no memory for a message, for instance
      relock(lock);
      outcome = {Outcome::Kind::error, describe_exception(std::current_exception()), 0};
    }
    lock.unlock();
    if (!conclude_task(std::move(task), *outcome, ledger_)) {
      cancel_pending();
    }
    ledger_.end();
    lock.lock();
  }

  /// Nothing if the worker died before it began.
  std::optional<Outcome> run_on(Lock& lock, Lane& lane, Slot& worker, const Task& task) {
    roster_.begin_use(*worker);
    const std::uint64_t number = ++last_number_;
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
    roster_.end_use(*worker);
    if (lost || !worker->alive() || worker->spent()) {
      lane.count_case_end(result ? *result : not_begun(*worker), options_);
      roster_.dismiss(lock, worker);
    } else {
      lane.case_ends = {};
    }
    return result;
  }

  /// The worker ended before it began with what it was given; that is told, for no case will say it.
  Outcome not_begun(const WorkerProcess& worker) const {
    if (options_.on_replaced && worker.death() != kInterrupted) {
      options_.on_replaced(worker.death());
    }
    return {Outcome::Kind::error, worker.death(), 0};
  }

  void answer_next(Lock& lock, Lane& lane, Slot& worker) {
    const Question question = std::move(lane.questions.front());
    lane.questions.pop_front();
    std::size_t answered = 0;
    bool accepted = true;
    const AnswerSink tell = [&](std::size_t, const Outcome& outcome) {
      accepted = accepted && tell_answer(question, answered, outcome, ledger_);
      ++answered;
    };
    Outcome rest{Outcome::Kind::error, "", 0};
    try {
      for (int deaths = 0; answered < question.cases.size() && roster_.prepare(lock, lane, worker);) {
        const std::size_t before = answered;
        ask_on(lock, lane, worker, std::span(question.cases).subspan(answered), tell);
        deaths = answered == before ? deaths + 1 : 0;
        if (deaths == kDeathsBeforeBegin) {
          tell(answered, {Outcome::Kind::crashed, lane.last_death, 0});
          deaths = 0;
        }
      }
      rest.reason = why_not_begun(lane);
    } catch (const std::exception&) {
      relock(lock);
      rest.reason = describe_exception(std::current_exception());
    }
    lock.unlock();
    while (answered < question.cases.size()) {
      tell(answered, rest);
    }
    if (!accepted) {
      cancel_pending();
    }
    ledger_.end();
    lock.lock();
  }

  void ask_on(Lock& lock, Lane& lane, Slot& worker, std::span<const plan::Case* const> cases, const AnswerSink& tell) {
    roster_.begin_use(*worker);
    const std::uint64_t number = ++last_number_;
    lock.unlock();
    std::size_t answers = 0;
    Outcome end;
    bool lost = false;
    const AnswerSink listen = [&](std::size_t index, const Outcome& outcome) {
      ++answers;
      end = outcome;
      tell(index, outcome);
    };
    bool begun = true;
    try {
      begun = worker->ask(number, cases, listen).has_value();
    } catch (...) {
      lost = true;
      listen(answers, {Outcome::Kind::error, describe_exception(std::current_exception()), 0});
    }
    lock.lock();
    roster_.end_use(*worker);
    const bool ended = lost || !worker->alive() || worker->spent();
    // The last answer of a worker that has ended is its death.
    if (answers > (ended ? 1U : 0U)) {
      lane.question_ends = {};
    }
    if (ended) {
      lane.count_question_end(begun ? end : not_begun(*worker), options_);
      roster_.dismiss(lock, worker);
    }
  }

  WorkerOptions options_;
  std::shared_ptr<ArenaPool> arenas_;
  std::mutex output_mutex_;
  Ledger ledger_;
  std::mutex mutex_;
  std::condition_variable changed_;  ///< anything below changed
  WorkerRoster roster_;
  std::map<WorkerKey, std::unique_ptr<Lane>> lanes_;
  std::uint64_t last_number_ = 0;
  bool stop_ = false;
  std::vector<std::thread> slots_;
};

}  // namespace

std::unique_ptr<Pool> make_process_pool(WorkerOptions options) {
  return std::make_unique<ProcessPool>(std::move(options));
}

}  // namespace numcheck::worker
