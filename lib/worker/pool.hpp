// Implementations of WorkerPool: child processes with shared memory, or everything in this process.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string_view>

#include "worker/workers.hpp"

namespace numcheck::worker {

/// Reason of tasks that were cancelled or killed.
inline constexpr std::string_view kInterrupted = "interrupted";

[[nodiscard]] inline bool is_interrupt(const Outcome& outcome) {
  return outcome.kind == Outcome::Kind::error && outcome.reason == kInterrupted;
}

class Pool {
 public:
  virtual ~Pool() = default;
  [[nodiscard]] virtual std::shared_ptr<SharedBlock> allocate(std::size_t bytes, BlockUse use) = 0;
  [[nodiscard]] virtual WorkerHello hello(const WorkerKey& key) = 0;
  virtual void ask(Question question) = 0;
  virtual void submit(Task task) = 0;
  virtual void expect_no_more() {}
  virtual void wait_idle() = 0;
  virtual void cancel_pending() = 0;
  virtual void kill_workers() = 0;
};

[[nodiscard]] std::unique_ptr<Pool> make_process_pool(WorkerOptions options);
[[nodiscard]] std::unique_ptr<Pool> make_in_process_pool(WorkerOptions options);

/// Counts tasks and questions in flight and keeps the first exception thrown by a callback. Thread-safe.
class WorkTracker {
 public:
  void begin();
  void end();
  /// Stores the current exception if it is the first.
  void keep_exception();
  /// Waits until every begin() has had its end(); rethrows the stored exception once.
  void wait();

 private:
  std::mutex mutex_;
  std::condition_variable idle_;
  std::size_t in_flight_ = 0;
  std::exception_ptr exception_;
};

/// Calls on_end, then releases the task's blocks. False if on_end threw; the tracker keeps the exception.
bool finish_task(Task&& finished, const Outcome& outcome, WorkTracker& tracker);

/// Calls the question's on_answer. False if it threw; the tracker keeps the exception.
bool deliver_answer(const Question& question, std::size_t index, const Outcome& outcome, WorkTracker& tracker);

/// Wraps a task's on_run so that it never throws: the first exception is stored in `failure`, later calls do nothing.
[[nodiscard]] RunSink guarded_sink(const Task& task, std::exception_ptr& failure);

/// The case boundary: executes the case and turns an exception into Outcome::error with its type and message.
/// Afterwards checks the device; if it is lost, the outcome is `crashed` with the text of the first error and the
/// launch that preceded it, and the executor must not be used again.
[[nodiscard]] Outcome execute_guarded(Executor& executor, const plan::Case& c, std::span<const HostPort> ports,
                                      const ExecuteOptions& options, const RunSink& sink);

/// The same for a question: `done` if the case can run.
[[nodiscard]] Outcome support_guarded(Executor& executor, const plan::Case& c, const ExecuteOptions& options);

/// "CudaError: out of memory (...)".
[[nodiscard]] std::string describe_exception(const std::exception_ptr& exception);

}  // namespace numcheck::worker
