#include "run/stop_control.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "core/parallel.hpp"
#include "core/strings.hpp"

namespace numcheck::run {

StopControl::StopControl(const PipelineOptions& options, const ResultCollector& results, worker::WorkerPool& pool)
    : options_(options), results_(results), pool_(pool) {}

StopControl::Cause StopControl::check() const {
  if (options_.interrupted && options_.interrupted() != 0) {
    return Cause::interrupt;
  }
  if (options_.stop_after_failures != 0 && results_.failed() >= options_.stop_after_failures) {
    return Cause::failures;
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  return options_.budget_s > 0 && elapsed.count() >= options_.budget_s ? Cause::budget : Cause::none;
}

bool StopControl::must_stop() {
  const Cause cause = check();
  // An interrupt overrides any earlier cause, because it determines the exit code.
  Cause expected = Cause::none;
  if (cause == Cause::interrupt) {
    cause_ = cause;
  } else if (cause != Cause::none) {
    cause_.compare_exchange_strong(expected, cause);
  }
  return cause_ != Cause::none;
}

StopControl::~StopControl() {
  core::cancel_references(false);
}

void StopControl::watch(const std::stop_token& stop) {
  constexpr auto kPollInterval = std::chrono::milliseconds(50);
  constexpr auto kSayAfter = std::chrono::seconds(1);
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  bool cancelled = false;
  bool killed = false;
  std::optional<std::chrono::steady_clock::time_point> interrupted_at;
  bool told = !options_.on_waiting;
  while (!stop.stop_requested()) {
    if (!cancelled && must_stop()) {
      pool_.cancel_pending();
      cancelled = true;
    }
    if (!killed && options_.interrupted && options_.interrupted() >= 2) {
      pool_.kill_workers();
      core::cancel_references(true);
      killed = true;
    }
    if (!told && interrupted()) {
      const auto now = std::chrono::steady_clock::now();
      interrupted_at = interrupted_at.value_or(now);
      if (now - *interrupted_at >= kSayAfter) {
        options_.on_waiting(stuck_.running());
        told = true;
      }
    }
    if (const auto sentence = stuck_.check(); sentence && options_.on_stuck) {
      options_.on_stuck(*sentence);
    }
    stopped.wait_for(lock, stop, kPollInterval, [&stop] { return stop.stop_requested(); });
  }
}

std::string StopControl::why_not_started() const {
  switch (cause_.load()) {
    case Cause::interrupt:
      return "not started: the run was interrupted";
    case Cause::failures:
      return "not started: --fail-fast stopped the run";
    case Cause::budget:
      return fmt::format("not started: the budget of {} s was used up", core::shortest(options_.budget_s));
    case Cause::none:
      break;
  }
  return "not started";
}

}  // namespace numcheck::run
