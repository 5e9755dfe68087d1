// SIGINT, SIGTERM and SIGHUP: the first requests a clean stop, the second an immediate one.
#pragma once

#include <functional>
#include <memory>

#include "core/error.hpp"

namespace numcheck::run {

/// While an object exists, SIGINT, SIGTERM and SIGHUP (a terminal or connection closes) no longer end the process. They
/// are counted, and `on_signal(count)` is called with 1 and then 2 on a separate thread. A third signal has its default
/// action. A signal that is ignored on construction (nohup, background jobs) stays ignored. At most one object may
/// exist at a time (core::InternalError).
class Interrupt {
 public:
  explicit Interrupt(std::function<void(int)> on_signal = {});
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// Signals so far, at most 2.
  [[nodiscard]] int count() const noexcept;
  [[nodiscard]] bool requested() const noexcept { return count() > 0; }
  /// 130, 143 or 129, depending on the first signal; `success` if there was none.
  [[nodiscard]] core::ExitCode exit_code() const noexcept;
  /// Sleeps until the count reaches `wanted` (true) or the time is over (false).
  [[nodiscard]] bool wait_for(int wanted, double seconds);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace numcheck::run
