// Notices work of this process that does not come back: a library that retries for ever cannot be stopped, but it can
// be told.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

namespace numcheck::run {

/// One thread works, another looks. Time in which nobody looked (the process was stopped or starved) does not count.
class StuckWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// Work that should take far less than `limit_s`; it ends with the object that is returned.
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

  /// To be called again and again. Once, when the work has used up its limit: what is stuck, as a sentence.
  [[nodiscard]] std::optional<std::string> look(Clock::time_point now = Clock::now());

 private:
  void end();

  std::mutex mutex_;
  std::string what_;  ///< empty: nothing is being done
  double limit_s_ = 0;
  double counted_s_ = 0;
  Clock::time_point last_look_;
};

}  // namespace numcheck::run
