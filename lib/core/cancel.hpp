// Work that may have to end early. A thread's work has a stop token; parallel_for passes it on to the threads that help,
// and checks it before every body.
#pragma once

#include <stop_token>

#include "core/error.hpp"

namespace numcheck::core {

/// What work ends with once its stop is requested.
class Cancelled : public Error {
 public:
  Cancelled() : Error(ExitCode::interrupted, "interrupted") {}
};

/// While one exists, the work of this thread has this token; then again the one before.
class StopSection {
 public:
  explicit StopSection(std::stop_token token);
  ~StopSection();
  StopSection(const StopSection&) = delete;
  StopSection& operator=(const StopSection&) = delete;

 private:
  std::stop_token token_;
  const std::stop_token* before_;
};

/// That of this thread's work; without a section one that is never stopped.
[[nodiscard]] std::stop_token current_stop() noexcept;

/// Throws Cancelled if the stop of this thread's work is requested: for bodies of parallel_for that take more than a second
/// or so.
void throw_if_cancelled();

}  // namespace numcheck::core
