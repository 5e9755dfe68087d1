// Detects work in this process that never finishes: a library that retries forever cannot be stopped, but it can be
// reported.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

namespace numcheck::run {

/// One thread works, another checks. Time between checks counts up to a limit, so that a stopped or starved process
/// does not appear stuck.
class StuckWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// Marks the start of work that should take far less than `limit_s`; destroying the returned object marks its end.
  class Work {
   public:
    explicit Work(StuckWatch& watch) noexcept : watch_(watch) {}
    ~Work() { watch_.end(); }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    StuckWatch& watch_;
  };
  [[nodiscard]] Work begin(std::string what, double limit_s);

  /// To be called periodically. Returns what is stuck, once, when the work has exceeded its limit.
  [[nodiscard]] std::optional<std::string> check(Clock::time_point now = Clock::now());

 private:
  void end();

  std::mutex mutex_;
  std::string what_;  ///< empty: no work
  double limit_s_ = 0;
  double counted_s_ = 0;
  Clock::time_point last_check_;
};

}  // namespace numcheck::run
