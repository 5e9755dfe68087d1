// The work of this process: how long it takes, and its end when it takes too long or is no longer wanted. A library that
// retries forever does not end when it is told to; that is reported.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/cancel.hpp"
#include "core/error.hpp"

namespace numcheck::run {

/// Work was stopped because it took longer than the case's time limit. Its text says so.
class OutOfTime : public core::Error {
 public:
  explicit OutOfTime(const std::string& sentence) : Error(core::ExitCode::environment, sentence) {}
};

/// Some threads work, another checks. Time between checks counts up to a limit, so that a stopped or starved process
/// does not appear to take long. Thread-safe.
class WorkWatch {
 public:
  using Clock = std::chrono::steady_clock;

  struct Limits {
    double time_s = std::numeric_limits<double>::infinity();   ///< then its stop is requested
    double stuck_s = std::numeric_limits<double>::infinity();  ///< far more than it should take; then it is reported
  };

  /// Work in progress: destroying it marks its end. Several threads may have work at a time.
  class Work {
   public:
    Work(WorkWatch& watch, std::uint64_t number, std::stop_token stop) noexcept
        : watch_(watch), number_(number), stop_(std::move(stop)) {}
    ~Work() { watch_.end(number_); }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

    /// Calls body(), for which the limits count anew. Once the work's stop is requested, ends early with core::Cancelled;
    /// with OutOfTime, if that was because of the time limit.
    template <class Body>
    void run(const Body& body) const {
      watch_.start_clock(number_);
      const core::StopSection section(stop_);
      try {
        body();
      } catch (const core::Cancelled&) {
        watch_.throw_if_out_of_time(number_);
        throw;
      }
    }

   private:
    WorkWatch& watch_;
    std::uint64_t number_;
    std::stop_token stop_;
  };
  [[nodiscard]] Work begin(std::string what, const Limits& limits);

  /// To be called periodically. Requests the stop of work that has exceeded its time limit. Returns what is stuck, once,
  /// when it has exceeded that limit.
  [[nodiscard]] std::optional<std::string> check(Clock::time_point now = Clock::now());
  /// Requests the stop of all work, also of what begins later.
  void stop_all();
  /// For how long there has been the oldest work; 0 if there is none.
  [[nodiscard]] double longest_s(Clock::time_point now = Clock::now());
  /// What is being worked on, the oldest first.
  [[nodiscard]] std::vector<std::string> running();

 private:
  struct Watched {
    std::string what;
    Limits limits;
    Clock::time_point begun;
    double counted_s = 0;
    Clock::time_point last_check;
    std::stop_source stop;
    bool out_of_time = false;
    bool reported = false;
  };

  void end(std::uint64_t number);
  void start_clock(std::uint64_t number);
  void throw_if_out_of_time(std::uint64_t number);

  std::mutex mutex_;
  std::map<std::uint64_t, Watched> work_;
  std::uint64_t last_number_ = 0;
  bool stop_all_ = false;
};

}  // namespace numcheck::run
