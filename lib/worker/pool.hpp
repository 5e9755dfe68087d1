// What is behind WorkerPool: children over shared memory, or everything in this process.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string_view>

#include "worker/workers.hpp"

namespace numcheck::worker {

/// Reason of tasks that an interrupt ended.
inline constexpr std::string_view kInterrupted = "interrupted";

class Pool {
 public:
  virtual ~Pool() = default;
  [[nodiscard]] virtual std::shared_ptr<SharedBlock> allocate(std::size_t bytes, BlockUse use) = 0;
  [[nodiscard]] virtual WorkerHello hello(const WorkerKey& key) = 0;
  virtual void ask(Question question) = 0;
  virtual void submit(Task task) = 0;
  virtual void wait_idle() = 0;
  virtual void cancel_pending() = 0;
  virtual void kill_workers() = 0;
};

[[nodiscard]] std::unique_ptr<Pool> make_process_pool(WorkerOptions options);
[[nodiscard]] std::unique_ptr<Pool> make_in_process_pool(WorkerOptions options);

/// Counts tasks in flight and keeps the first exception of a callback. Thread-safe.
class Ledger {
 public:
  void begin();
  void end();
  /// Remembers the exception that is being handled.
  void keep_exception();
  /// Returns when begin() and end() are even; rethrows the kept exception once.
  void wait();

 private:
  std::mutex mutex_;
  std::condition_variable even_;
  std::size_t open_ = 0;
  std::exception_ptr exception_;
};

/// Ends a task: calls on_end, then lets go of its blocks. False if on_end threw; the ledger keeps the exception.
bool conclude_task(Task&& finished, const Outcome& outcome, Ledger& ledger);

/// Hands an answer to its question's on_answer. False if that threw; the ledger keeps the exception.
bool tell_answer(const Question& question, std::size_t index, const Outcome& outcome, Ledger& ledger);

/// Wraps a task's on_run so that it never throws: its first exception is kept in `failure` and later calls are dropped.
[[nodiscard]] RunSink guarded_sink(const Task& task, std::exception_ptr& failure);

/// The case boundary: executes and turns an exception into Outcome::error with type and text. Whatever the end, the
/// device is asked whether it still answers; if not, the case is Outcome::crashed with the first error's text and the
/// launch that it followed, and the executor must not be used again.
[[nodiscard]] Outcome execute_guarded(Executor& executor, const plan::Case& c, std::span<const HostPort> ports,
                                      const ExecuteOptions& options, const RunSink& sink);

/// The same for a question: `done` if the case can run.
[[nodiscard]] Outcome support_guarded(Executor& executor, const plan::Case& c, const ExecuteOptions& options);

/// "CudaError: out of memory (...)" of the exception.
[[nodiscard]] std::string describe_exception(const std::exception_ptr& exception);

}  // namespace numcheck::worker
