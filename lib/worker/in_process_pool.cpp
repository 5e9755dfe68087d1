// --in-process: the same interface without child processes, for debuggers, sanitizers and profilers.
#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/counted.hpp"
#include "core/error.hpp"
#include "core/trace.hpp"
#include "worker/plain_block.hpp"
#include "worker/pool.hpp"
#include "worker/start_thread.hpp"
#include "worker/task_spans.hpp"

namespace numcheck::worker {
namespace {

class InProcessPool final : public Pool {
 public:
  explicit InProcessPool(WorkerOptions options) : options_(std::move(options)) {
    if (!options_.factory) {
      throw core::InternalError("in-process runs need an executor factory");
    }
    thread_ = start_thread("to run the cases", [this] { serve(); });
  }

  ~InProcessPool() override {
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  std::shared_ptr<SharedBlock> allocate(std::size_t bytes, BlockUse /*use*/) override {
    return std::make_shared<PlainBlock>(bytes);
  }

  WorkerHello hello(const WorkerKey& key) override {
    reject_environment(key.environment);
    std::unique_lock lock(mutex_);
    hello_wanted_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return hello_.has_value() || start_error_; });
    if (!hello_) {
      std::rethrow_exception(start_error_);
    }
    return *hello_;
  }

  void ask(Question question) override {
    reject_environment(question.cases.front()->environment);
    const std::lock_guard lock(mutex_);
    questions_.push_back(std::move(question));  // before it counts: there may be no memory for it
    tracker_.begin();
    changed_.notify_all();
  }

  void submit(Task task) override {
    reject_environment(task.c->environment);
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
    tracker_.begin();
    changed_.notify_all();
  }

  void wait_idle() override { tracker_.wait(); }

  void cancel_pending() override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
  }

  /// There is nothing to kill: the running task finishes.
  void kill_workers() override { cancel_pending(); }

 private:
  static void reject_environment(const plan::Environment& environment) {
    if (!environment.empty()) {
      throw core::UsageError(
          "a case sets the environment variable " + environment.begin()->first +
          ", which libraries read once per process: run without --in-process, or set the variable in the "
          "shell and remove it from the plan");
    }
  }

  /// The executor is created, used and destroyed on this thread, because CUDA contexts are bound to threads.
  void serve() {
    const core::TraceSection section(options_.trace, "worker");
    std::unique_ptr<Executor> executor;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stop_ || has_work() || (hello_wanted_ && !hello_ && !start_error_); });
      if (!has_work() && stop_) {
        return;
      }
      if (!executor && !start_error_ && loss_.empty() && !(cancelled_ && !hello_wanted_)) {
        lock.unlock();
        std::exception_ptr error;
        executor = make(error);
        lock.lock();
        start_error_ = error;
        if (executor) {
          hello_ = {executor->device(), executor->libraries()};
        }
        changed_.notify_all();
      }
      if (!questions_.empty()) {
        const Question question = std::move(questions_.front());
        questions_.pop_front();
        lock.unlock();
        answer(executor, question);
        lock.lock();
      } else if (!queue_.empty()) {
        Task task = std::move(queue_.front());
        queue_.pop_front();
        const bool cancelled = cancelled_;
        lock.unlock();
        run(executor, std::move(task), cancelled);
        lock.lock();
      }
    }
  }

  std::unique_ptr<Executor> make(std::exception_ptr& error) const {
    const core::Span span("start worker");
    try {
      return options_.factory(options_.device);
    } catch (...) {
      error = std::current_exception();
      return nullptr;
    }
  }

  [[nodiscard]] bool has_work() const { return !questions_.empty() || !queue_.empty(); }

  [[nodiscard]] bool is_cancelled() {
    const std::lock_guard lock(mutex_);
    return cancelled_;
  }

  /// The outcome when there is no executor or the run was cancelled.
  [[nodiscard]] Outcome not_started(bool cancelled) const {
    if (cancelled || loss_.empty()) {
      return {Outcome::Kind::error, cancelled ? std::string(kInterrupted) : describe_exception(start_error_), 0};
    }
    return {Outcome::Kind::error,
            "not run: this process lost its device " + loss_ + "; without --in-process the worker would be replaced",
            0};
  }

  /// A process that has lost its device cannot recover it.
  void abandon_executor(std::unique_ptr<Executor>& executor, std::string loss) {
    loss_ = std::move(loss);
    // Never destroyed: tearing down a lost context can hang or fault.
    static std::vector<std::unique_ptr<Executor>>& lost = *new std::vector<std::unique_ptr<Executor>>;
    lost.push_back(std::move(executor));
  }

  /// An earlier case may have broken the device since; the next case must not be blamed for it.
  void check_device(std::unique_ptr<Executor>& executor) {
    if (const auto loss = executor ? executor->device_loss() : std::nullopt) {
      abandon_executor(executor, "between two cases (" + loss->error + "; " + loss->followed + ")");
    }
  }

  void handle_outcome(std::unique_ptr<Executor>& executor, const plan::Case& c, const Outcome& outcome) {
    if (outcome.kind == Outcome::Kind::crashed) {
      abandon_executor(executor, "in " + c.id);
    }
  }

  void answer(std::unique_ptr<Executor>& executor, const Question& question) {
    core::Span span("answer questions");
    span.note([&question] { return core::counted(static_cast<double>(question.cases.size()), "case"); });
    check_device(executor);
    bool accepted = true;
    for (std::size_t i = 0; i < question.cases.size() && accepted; ++i) {
      const plan::Case& c = *question.cases[i];
      const bool cancelled = is_cancelled();
      const Outcome outcome =
          cancelled || !executor ? not_started(cancelled) : support_guarded(*executor, c, execute_options(options_, c));
      handle_outcome(executor, c, outcome);
      accepted = deliver_answer(question, i, outcome, tracker_);
    }
    if (!accepted) {
      cancel_pending();
    }
    tracker_.end();
  }

  void run(std::unique_ptr<Executor>& executor, Task task, bool cancelled) {
    check_device(executor);
    Outcome outcome;
    if (cancelled || !executor) {
      outcome = not_started(cancelled);
    } else {
      std::exception_ptr failure;
      const RunSink on_run = guarded_sink(task, failure);
      TaskSpans spans(task);
      spans.start();
      outcome = execute_guarded(*executor, *task.c, task.ports, execute_options(options_, *task.c),
                                [&](const RunReport& report) { spans.hand_over(report, on_run); });
      handle_outcome(executor, *task.c, outcome);
      if (failure) {
        outcome = {Outcome::Kind::error, describe_exception(failure), outcome.device_s};
      }
    }
    if (!finish_task(std::move(task), outcome, tracker_)) {
      cancel_pending();
    }
    tracker_.end();
  }

  WorkerOptions options_;
  WorkTracker tracker_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Question> questions_;  ///< served before the tasks
  std::deque<Task> queue_;
  std::optional<WorkerHello> hello_;
  std::exception_ptr start_error_;
  std::string loss_;  ///< where the device was lost: "in gemm/..."; used only by the thread
  bool hello_wanted_ = false;
  bool cancelled_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Pool> make_in_process_pool(WorkerOptions options) {
  return std::make_unique<InProcessPool>(std::move(options));
}

}  // namespace numcheck::worker
