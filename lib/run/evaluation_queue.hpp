// Threads that judge results while workers go on.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace numcheck::run {

/// Work in progress is bounded: post() waits while too much of it is waiting. Thread-safe.
class EvaluationQueue {
 public:
  using Work = std::function<void()>;

  /// Work that must be done in the order in which it was posted: that of one case.
  class Strand {
   private:
    friend class EvaluationQueue;
    std::deque<Work> waiting_;
    bool running_ = false;
  };

  /// Starts up to `threads` threads; if the system allows none, post() does the work itself. `on_exception` is called
  /// for the first exception of any work; it must not throw.
  EvaluationQueue(std::size_t threads, std::function<void()> on_exception);
  /// Does what is waiting.
  ~EvaluationQueue();
  EvaluationQueue(const EvaluationQueue&) = delete;
  EvaluationQueue& operator=(const EvaluationQueue&) = delete;

  /// Must not be called from work. If there is no memory for it, std::bad_alloc, and nothing was posted.
  void post(const std::shared_ptr<Strand>& strand, Work work);
  /// Waits until all that the strand was given is done.
  void wait(const Strand& strand);
  /// Waits until everything is done; rethrows the first exception, once.
  void wait_idle();

 private:
  void serve();
  void run(const Work& work);

  std::function<void()> on_exception_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<std::shared_ptr<Strand>> ready_;  ///< strands with work that no thread does
  std::size_t pending_ = 0;                   ///< work that is not done
  std::exception_ptr exception_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace numcheck::run
