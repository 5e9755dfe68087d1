// SIGINT, SIGTERM and SIGHUP: the first asks for a clean stop, the second for a stop at once.
#pragma once

#include <functional>
#include <memory>

#include "core/error.hpp"

namespace numcheck::run {

/// While one exists, SIGINT, SIGTERM and SIGHUP (a terminal or connection that closes) no longer end the process: they
/// are counted, and `on_signal(count)` is called with 1 and then 2 on a thread of this object. A third signal ends the
/// process as if nobody had caught it. A signal that is ignored when the object is made (nohup, background jobs) stays
/// ignored. At most one may exist at a time (core::InternalError).
class Interrupt {
 public:
  explicit Interrupt(std::function<void(int)> on_signal = {});
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// Signals so far: 0, 1, 2.
  [[nodiscard]] int count() const noexcept;
  [[nodiscard]] bool requested() const noexcept { return count() > 0; }
  /// 130, 143 or 129, after the first signal that came; `success` before.
  [[nodiscard]] core::ExitCode exit_code() const noexcept;
  /// Sleeps until the count reaches `wanted` or the time is over; true in the first case.
  [[nodiscard]] bool wait_for(int wanted, double seconds);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace numcheck::run
