#include "run/evaluation_queue.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "core/error.hpp"
#include "worker/start_thread.hpp"

namespace numcheck::run {
namespace {

/// Enough that no thread waits; each holds the outputs of a run.
constexpr std::size_t kPendingPerThread = 4;

}  // namespace

EvaluationQueue::EvaluationQueue(std::size_t threads, std::function<void()> on_exception)
    : on_exception_(std::move(on_exception)) {
  // Threads that have started do the work.
  try {
    threads_.reserve(threads);  // no memory for a thread that runs would end the program
    for (std::size_t i = 0; i < threads; ++i) {
      threads_.push_back(worker::start_thread("to judge results", [this] { serve(); }));
    }
  } catch (const core::EnvironmentError&) {
  } catch (const std::bad_alloc&) {
  }
}

EvaluationQueue::~EvaluationQueue() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void EvaluationQueue::post(const std::shared_ptr<Strand>& strand, Work work) {
  std::unique_lock lock(mutex_);
  if (threads_.empty()) {
    lock.unlock();
    run(work);
    return;
  }
  changed_.wait(lock, [this] { return pending_ < kPendingPerThread * threads_.size(); });
  const bool becomes_ready = !strand->running_ && strand->waiting_.empty();
  std::list<std::shared_ptr<Strand>> ready(becomes_ready ? 1 : 0, strand);
  strand->waiting_.push_back(std::move(work));
  // Nothing that follows needs memory: work that is counted is done.
  ++pending_;
  ready_.splice(ready_.end(), ready);
  changed_.notify_all();
}

void EvaluationQueue::wait(const Strand& strand) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&strand] { return !strand.running_ && strand.waiting_.empty(); });
}

void EvaluationQueue::wait_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return pending_ == 0; });
  if (exception_) {
    std::rethrow_exception(std::exchange(exception_, nullptr));
  }
}

void EvaluationQueue::run(const Work& work) {
  try {
    work();
  } catch (...) {
    std::unique_lock lock(mutex_);
    if (!exception_) {
      exception_ = std::current_exception();
      lock.unlock();
      on_exception_();
    }
  }
}

void EvaluationQueue::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !ready_.empty(); });
    if (ready_.empty()) {
      return;
    }
    std::list<std::shared_ptr<Strand>> taken;
    taken.splice(taken.end(), ready_, ready_.begin());
    const std::shared_ptr<Strand>& strand = taken.front();
    Work work = std::move(strand->waiting_.front());
    strand->waiting_.pop_front();
    strand->running_ = true;
    lock.unlock();
    run(work);
    work = nullptr;  // before the lock is taken: what it holds may take time to free
    lock.lock();
    strand->running_ = false;
    --pending_;
    if (!strand->waiting_.empty()) {
      ready_.splice(ready_.end(), taken);
    }
    changed_.notify_all();
  }
}

}  // namespace numcheck::run
