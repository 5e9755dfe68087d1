#include "core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/cancel.hpp"
#include "core/cpu_limit.hpp"
#include "core/error.hpp"
#include "core/trace.hpp"

namespace numcheck::core {
namespace {

using Body = std::function<void(std::size_t)>;

/// True while this thread runs a body: a nested call then runs inline, because waiting for the pool from within it
/// could leave every thread waiting.
thread_local bool inside_body = false;

/// One call of parallel_for. Threads take indices until none are left.
class Job {
 public:
  Job(std::size_t count, const Body& body)
      : count_(count), body_(body), stop_(current_stop()), trace_(current_trace()) {}

  /// On another thread than that of the call.
  void help() {
    const TraceSection section(trace_, "helper");
    const std::size_t first = next_.fetch_add(1);
    if (first < count_) {
      const Span span(trace_.stage.empty() ? "help" : trace_.stage);
      work_from(first);
    }
  }

  void work() { work_from(next_.fetch_add(1)); }

  [[nodiscard]] bool has_indices() const { return next_.load() < count_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  void rethrow() const {
    if (error_) {
      std::rethrow_exception(error_);
    }
  }

  int helpers = 0;  ///< pool threads inside help(); guarded by the pool's mutex

 private:
  void work_from(std::size_t first) {
    const StopSection section(stop_);
    inside_body = true;
    for (std::size_t i = first; i < count_; i = next_.fetch_add(1)) {
      try {
        throw_if_cancelled();
        body_(i);
      } catch (...) {
        if (stop_.stop_requested()) {
          next_ = count_;
        }
        const std::scoped_lock lock(error_mutex_);
        if (!error_) {
          error_ = std::current_exception();
        }
      }
    }
    inside_body = false;
  }

  std::size_t count_;
  const Body& body_;
  std::stop_token stop_;
  TraceContext trace_;
  std::atomic<std::size_t> next_{0};
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

class Pool {
 public:
  [[nodiscard]] int thread_count() {
    const std::scoped_lock lock(mutex_);
    return threads_;
  }

  void set_thread_count(int threads) {
    const std::scoped_lock resizing(resize_mutex_);
    stop();
    const std::scoped_lock lock(mutex_);
    threads_ = threads;
  }

  void run(Job& job) {
    std::size_t helpers = 0;
    {
      const std::scoped_lock lock(mutex_);
      start_missing();
      jobs_.push_back(&job);
      helpers = std::min(job.count() - 1, workers_.size());
    }
    for (std::size_t i = 0; i < helpers; ++i) {  // no more than can help: small jobs are many
      wake_.notify_one();
    }
    job.work();
    std::unique_lock lock(mutex_);
    std::erase(jobs_, &job);
    done_.wait(lock, [&] { return job.helpers == 0; });
  }

 private:
  void start_missing() {
    try {
      while (!stopping_ && static_cast<int>(workers_.size()) < threads_ - 1) {
        workers_.emplace_back([this] { serve(); });
      }
    } catch (const std::system_error&) {
      // The system provides no more threads: the existing ones and the caller do the work.
    }
  }

  void stop() {
    std::vector<std::thread> leaving;
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
      leaving.swap(workers_);
    }
    wake_.notify_all();
    for (std::thread& worker : leaving) {
      worker.join();
    }
    const std::scoped_lock lock(mutex_);
    stopping_ = false;
  }

  Job* open_job() {
    const auto found = std::find_if(jobs_.begin(), jobs_.end(), [](const Job* job) { return job->has_indices(); });
    return found == jobs_.end() ? nullptr : *found;
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Job* job = nullptr;
      wake_.wait(lock, [&] { return stopping_ || (job = open_job()) != nullptr; });
      if (stopping_) {
        return;
      }
      ++job->helpers;
      lock.unlock();
      job->help();
      lock.lock();
      if (--job->helpers == 0) {
        done_.notify_all();
      }
    }
  }

  std::mutex resize_mutex_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<Job*> jobs_;
  std::vector<std::thread> workers_;
  int threads_ = available_cpus();
  bool stopping_ = false;
};

/// Never destroyed: the threads waiting in it must not outlive it, and the process may exit from any of them.
Pool& pool() {
  static Pool& instance = *new Pool;
  return instance;
}

}  // namespace

int thread_count() noexcept {
  return pool().thread_count();
}

void set_thread_count(int threads) {
  if (threads < 1) {
    throw InternalError("set_thread_count: " + std::to_string(threads) + " threads");
  }
  pool().set_thread_count(threads);
}

SerialSection::SerialSection(bool active) noexcept : before_(inside_body) {
  inside_body = inside_body || active;
}

SerialSection::~SerialSection() {
  inside_body = before_;
}

void parallel_for(std::size_t count, const Body& body) {
  if (count == 0) {
    return;
  }
  Job job(count, body);
  if (inside_body) {
    job.work();
    inside_body = true;
  } else if (count == 1) {
    job.work();
  } else {
    pool().run(job);
  }
  job.rethrow();
}

void parallel_chunks(std::size_t size, std::size_t chunk,
                     const std::function<void(std::size_t, std::size_t, std::size_t)>& body) {
  if (chunk == 0) {
    throw InternalError("parallel_chunks: chunks of 0 elements");
  }
  const std::size_t count = size / chunk + (size % chunk == 0 ? 0 : 1);
  parallel_for(count, [&](std::size_t index) {
    const std::size_t begin = index * chunk;
    body(index, begin, begin + std::min(chunk, size - begin));
  });
}

}  // namespace numcheck::core
