// Detects work in this process that never finishes: a library that retries forever cannot be stopped, but it can be
// reported.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace numcheck::run {

/// Some threads work, another checks. Time between checks counts up to a limit, so that a stopped or starved process
/// does not appear stuck.
class StuckWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// Marks the start of work that should take far less than `limit_s`; destroying the returned object marks its end.
  /// Several threads may have work at a time.
  class Work {
   public:
    Work(StuckWatch& watch, std::uint64_t number) noexcept : watch_(watch), number_(number) {}
    ~Work() { watch_.end(number_); }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    StuckWatch& watch_;
    std::uint64_t number_;
  };
  [[nodiscard]] Work begin(std::string what, double limit_s);

  /// To be called periodically. Returns what is stuck, once, when it has exceeded its limit.
  [[nodiscard]] std::optional<std::string> check(Clock::time_point now = Clock::now());
  /// What is being worked on, the oldest first.
  [[nodiscard]] std::vector<std::string> running();

 private:
  struct Watched {
    std::string what;
    double limit_s = 0;
    double counted_s = 0;
    Clock::time_point last_check;
    bool reported = false;
  };

  void end(std::uint64_t number);

  std::mutex mutex_;
  std::map<std::uint64_t, Watched> work_;
  std::uint64_t last_number_ = 0;
};

}  // namespace numcheck::run
